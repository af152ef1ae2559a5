meta:
  id: bound_file
  title: The durable bound (stratalog/bound)
  ks-version: '0.11'
  endian: be
  imports:
    - sidecar_records
doc: |
  Two slots. Of those with a whole record, the one with the larger sequence
  holds. Whether a record is whole tells its checksum, which Kaitai does not
  compute.
seq:
  - id: slots
    type: slot
    size: 4096
    repeat: expr
    repeat-expr: 2
types:
  slot:
    instances:
      magic:
        pos: 0
        type: u4
      is_written:
        value: magic == 0x534c4244
        doc: |
          Whether the slot starts like a record.
      record:
        pos: 0
        type: sidecar_records::bound
        if: is_written

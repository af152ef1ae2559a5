meta:
  id: state_file
  title: The state and the cursors of a log (stratalog/state, stratalog/cursors)
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
    size: 65536
    repeat: expr
    repeat-expr: 2
types:
  slot:
    instances:
      magic:
        pos: 0
        type: u4
      is_written:
        value: magic == 0x534c5354
        doc: |
          Whether the slot starts like a record.
      record:
        pos: 0
        type: sidecar_records::state
        if: is_written

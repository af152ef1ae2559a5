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
        type: state
        if: is_written
  state:
    seq:
      - id: header
        type: sidecar_records::state_header
      - id: epochs
        type: sidecar_records::epoch_entry
        repeat: expr
        repeat-expr: header.epoch_count
      - id: ranges
        type: sidecar_records::range_entry
        repeat: expr
        repeat-expr: header.range_count
      - id: cursors
        type: sidecar_records::cursor_entry
        repeat: expr
        repeat-expr: header.cursor_count
      - id: checksum
        type: u4
        doc: |
          CRC-32C (Castagnoli) over all bytes before it.

meta:
  id: commitlog_segment
  title: A segment of the commit log (commitlog/<20 digits>)
  ks-version: '0.11'
  endian: be
  imports:
    - message_records
doc: |
  Records one behind the other, without gaps. A blank record takes the rest of
  the file. Where zeros begin, the log ends; the last entry is then empty.
seq:
  - id: entries
    type: entry
    repeat: until
    repeat-until: _io.eof or not (_.is_message or _.is_blank)
types:
  entry:
    doc: |
      A message, or the blank record, or nothing where the records end.
    seq:
      - id: message
        type: message_records::message
        size: total_size
        if: is_message
      - id: blank
        type: message_records::blank
        size: total_size
        if: is_blank
    instances:
      magic:
        pos: _io.pos + 4
        type: u4
      total_size:
        pos: _io.pos
        type: s4
      is_message:
        value: magic == 0xdaa320a7 or magic == 0xdaa320ab
      is_blank:
        value: magic == 0xcbd43194

meta:
  id: consumequeue_file
  title: A file of a consume queue (consumequeue/<topic>/<queue id>/<20 digits>)
  ks-version: '0.11'
  endian: be
  imports:
    - queue_records
doc: |
  Units one behind the other. A unit of size 0 was never written; one of size
  0x7fffffff fills a queue that does not start at 0.
seq:
  - id: units
    type: queue_records::queue_unit
    repeat: eos

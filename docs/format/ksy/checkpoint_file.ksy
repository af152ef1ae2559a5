meta:
  id: checkpoint_file
  title: The checkpoint file (checkpoint)
  ks-version: '0.11'
  endian: be
  imports:
    - checkpoint_records
seq:
  - id: checkpoint
    type: checkpoint_records::checkpoint
  - id: zeros
    size-eos: true

package contract

// Offsets, lengths and mapped segments need 64 bits: a 32-bit int cannot hold
// this constant, so the module does not compile there.
const _ int = 1 << 62

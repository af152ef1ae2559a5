package gen

// algorithm is how a checksum is computed in Go.
type algorithm struct {
	// bytes is the width of the sum.
	bytes int
	// call is the Go expression; %s are the covered bytes.
	call string
	// pkg is the package that the expression needs.
	pkg string
}

// algorithms are the checksums of the language.
var algorithms = map[string]algorithm{
	"adler32": {4, "adler32.Checksum(%s)", "hash/adler32"},
	"crc32":   {4, "crc32.ChecksumIEEE(%s)", "hash/crc32"},
	"crc32c":  {4, "crc32.Checksum(%s, castagnoli)", "hash/crc32"},
	"crc64":   {8, "crc64.Checksum(%s, ecma)", "hash/crc64"},
}

// algorithmNames is the list of algorithms for error messages.
const algorithmNames = "adler32, crc32, crc32c, crc64"

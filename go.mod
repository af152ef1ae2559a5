module github.com/stratalog/stratalog

go 1.26.0

require (
	github.com/valyala/bytebufferpool v1.0.0
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.50.0
)

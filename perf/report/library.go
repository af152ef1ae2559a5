package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"net/http"

	"github.com/tsenart/vegeta/v12/lib/plot"
)

// uPlotLicence must go wherever uPlot goes.
//
//go:embed uplot-licence.txt
var uPlotLicence string

// library is the chart library, as the page carries it.
type library struct{ script, style []byte }

// chartLibrary takes uPlot out of the module that brings it.
func chartLibrary() (library, error) { return libraryFrom(plot.Assets) }

func libraryFrom(files http.FileSystem) (library, error) {
	var l library
	for _, part := range []struct {
		name string
		into *[]byte
		// must and mustNot are what tells that the file can stand in a page.
		must, mustNot string
	}{
		{"uPlot.min.js", &l.script, "var uPlot=", "</script"},
		{"uPlot.min.css", &l.style, ".uplot", "</style"},
	} {
		f, err := files.Open(part.name)
		if err != nil {
			return l, fmt.Errorf("chart library: %w", err)
		}
		text, err := io.ReadAll(f)
		if err := f.Close(); err != nil {
			return l, fmt.Errorf("chart library: %w", err)
		}
		if err != nil {
			return l, fmt.Errorf("chart library: %w", err)
		}
		if !bytes.Contains(text, []byte(part.must)) || bytes.Contains(bytes.ToLower(text), []byte(part.mustNot)) {
			return l, fmt.Errorf("chart library: %s is not what it should be", part.name)
		}
		*part.into = text
	}
	return l, nil
}

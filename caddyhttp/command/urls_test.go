package command

import (
	"slices"
	"strings"
	"testing"
)

func TestReadURLs(t *testing.T) {
	got, err := readURLs(strings.NewReader("# all\n json://a/1 # the first\n\t# none\n" +
		"\nslack://x/#room\t#second\njson://b/1, json://b/2\tform://b/3,x # three\n"))
	if want := []string{"json://a/1", "slack://x/#room", "json://b/1", "json://b/2", "form://b/3,x"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

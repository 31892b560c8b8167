package logs

import (
	"log"
	"strings"
	"testing"
)

// The standard log has all lines, but nothing of what a destination sent.
func TestStdLog(t *testing.T) {
	var out strings.Builder
	l := log.New(stdLog{&out}, "prefix ", 0)
	l.Print("a line")
	l.Printf("Unsolicited response received on idle HTTP channel starting with %q; err=%v", "a secret", nil)
	l.Print("another line")
	if got, want := out.String(),
		"prefix a line\nprefix Unsolicited response received on idle HTTP channel\nprefix another line\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

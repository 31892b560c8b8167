package logs

import (
	"bytes"
	"io"
	"log"
)

// unsolicited is the beginning of what net/http logs if a destination sends more
// than its answer. What the destination sent follows.
const unsolicited = "Unsolicited response received on idle HTTP channel"

// stdLog writes the lines of the standard log, which net/http uses, without what
// a destination sent: that may repeat secrets of its URL.
type stdLog struct{ io.Writer }

func (l stdLog) Write(line []byte) (int, error) {
	shown := line
	if i := bytes.Index(line, []byte(unsolicited)); i >= 0 {
		shown = append(bytes.Clone(line[:i+len(unsolicited)]), '\n')
	}
	if _, err := l.Writer.Write(shown); err != nil {
		return 0, err
	}
	return len(line), nil
}

// ProtectStandard lets the standard log pass through a [stdLog]. Caddy sets the
// output of the standard log for each configuration before it provisions apps.
func ProtectStandard() {
	w := log.Writer()
	if _, ok := w.(stdLog); !ok {
		log.SetOutput(stdLog{w})
	}
}

package queued

import (
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Try is an attempt of the queue, as the pages show it.
type Try struct {
	At    time.Time // when it ended
	Error string    // "" for a success
}

// The bounds of the stored attempts of a delivery.
const (
	maxTries    = 20
	maxTryError = 200 // bytes
)

// tries are the last attempts of a delivery, the oldest first. They are part of its stored result
// (see [resultFields]).
type tries []Try

func (t *tries) fields(c *wire.Codec) { wire.Records(c, 11, (*[]Try)(t), (*Try).fields) }

func (t *Try) fields(c *wire.Codec) {
	wire.Time(c, 1, &t.At)
	wire.Text(c, 2, &t.Error)
}

// AppendTry appends to a stored result the attempts in the stored result before, and the attempt
// with the result r. A success without an earlier failure needs no list.
func AppendTry(result, before []byte, r notifier.Result) []byte {
	all := tries(Tries(before))
	if r.Err == nil && len(all) == 0 {
		return result
	}
	t := Try{At: time.Now()}
	if r.Err != nil {
		t.Error = markup.TruncateBytes(r.Err.Error(), maxTryError)
	}
	all = append(all, t)
	all = all[max(len(all)-maxTries, 0):]
	return wire.Append(result, &all, (*tries).fields)
}

// Tries returns the last attempts of a stored result, the oldest first. If it is damaged, Tries
// returns the attempts before the damage.
func Tries(result []byte) []Try {
	var all tries
	_ = wire.Decode(result, &all, (*tries).fields)
	return all
}

package inbox

import (
	"net/http"
	"sync"

	"github.com/caddy-notify/caddy-notify/gateway/api"
)

// ErrNotReader is the answer to everyone who may not read an inbox, whether the key has
// one or exists at all.
var ErrNotReader = api.Errorf(http.StatusUnauthorized, "this needs a reader of the key; send it as Authorization: Bearer, as the password of Basic authentication or in ?token=")

// Streams are those of the inboxes of a site.
type Streams struct {
	once   sync.Once
	Ending chan struct{} // closed when they have to end
}

// Stop ends the streams, for which a server that stops would wait. s may be nil.
func (s *Streams) Stop() {
	if s != nil {
		s.once.Do(func() { close(s.Ending) })
	}
}

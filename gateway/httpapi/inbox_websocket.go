package httpapi

import (
	"net/http"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/feed"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/socket"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
)

// socketTimeouts bound how long a client of ntfy may take.
var socketTimeouts = socket.Timeouts{Write: writeTimeout, Pong: inbox.KeepaliveInterval + 15*time.Second}

// websocket sends messages to the client as they arrive.
func (n *ntfyReader) websocket(w http.ResponseWriter, r *http.Request) error {
	if !socket.IsUpgrade(r) {
		return api.Errorf(http.StatusBadRequest, "this address is for WebSockets; use …/json, …/sse or …/raw without one")
	}
	if err := n.h.checkSocketOrigin(r); err != nil {
		return err
	}
	// A client that may not wait gets its answer before the connection is taken over.
	leave, err := n.enterWaiting(r)
	if err != nil {
		return err
	}
	defer leave()
	_, unlisten, err := n.Store.Listen(r.Context(), n.Place)
	if err != nil {
		return Answer(err)
	}
	unlisten()
	conn, ctx, err := socket.Open(w, r, socketTimeouts)
	if err != nil {
		return nil //nolint:nilerr // the client has its answer
	}
	send := func(e *feed.NtfyEvent) error {
		data, err := e.Line()
		if err != nil {
			return err
		}
		return conn.Send(data)
	}
	if n.Poll {
		err = n.polled(r, send)
	} else {
		err = n.Follow(ctx, n.Since, func(event string, m *inbox.Message, until time.Time) error {
			if event == inbox.EventKeepalive {
				if err := conn.Ping(); err != nil {
					return err
				}
			}
			return n.Events(event, m, until, send)
		})
	}
	if err == nil {
		conn.Bye()
	}
	conn.Close()
	n.ended(r, err)
	return nil
}

// checkSocketOrigin returns a 403 if a page of another site opens a WebSocket, unless its origin
// may send messages. Browsers do not restrict WebSockets as they do other requests.
func (h *Inboxes) checkSocketOrigin(r *http.Request) error {
	asChange := r.Clone(r.Context()) // a GET is not checked
	asChange.Method = http.MethodPost
	if h.CheckOrigin(asChange) != nil {
		return errForeignSocket
	}
	return nil
}

var errForeignSocket = api.Errorf(http.StatusForbidden,
	"a page of another site opens this WebSocket; the operator can allow its origin with trusted_origins")

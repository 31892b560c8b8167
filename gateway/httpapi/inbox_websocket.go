package httpapi

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
)

// The bounds of a WebSocket. Clients have nothing to send.
const (
	socketBuffer    = 1 << 10 // bytes
	socketReadLimit = 64
	pongTimeout     = inbox.KeepaliveInterval + 15*time.Second
)

// socketBuffers lends the buffers for writing, so that a socket on which nothing happens
// has none.
var socketBuffers = &sync.Pool{}

// hijacker lets a WebSocket take over the connection of a response that other handlers
// have wrapped.
type hijacker struct{ http.ResponseWriter }

// Hijack implements http.Hijacker.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.ResponseWriter).Hijack()
}

// websocket sends the client messages as they come in.
func (n *ntfyReader) websocket(w http.ResponseWriter, r *http.Request) error {
	if !websocket.IsWebSocketUpgrade(r) {
		return api.Errorf(http.StatusBadRequest, "this address is for WebSockets; use …/json, …/sse or …/raw without one")
	}
	if err := n.h.checkSocketOrigin(r); err != nil {
		return err
	}
	// A client that cannot listen gets its answer before the connection is taken over.
	_, leave, err := n.Store.Listen(r.Context(), n.Place)
	if err != nil {
		return Answer(err)
	}
	leave()
	u := websocket.Upgrader{
		ReadBufferSize: socketBuffer, WriteBufferSize: socketBuffer, WriteBufferPool: socketBuffers,
		CheckOrigin: func(*http.Request) bool { return true }, // it is checked
	}
	conn, err := u.Upgrade(hijacker{w}, r, nil)
	if err != nil {
		return nil //nolint:nilerr // Upgrade has answered
	}
	ctx, cancel := context.WithCancel(r.Context())
	var reader sync.WaitGroup
	reader.Go(func() { readSocket(conn, cancel) })
	send := func(e *inbox.NtfyEvent) error {
		data, err := e.Line()
		if err != nil {
			return err
		}
		_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // the next write fails if the connection does not work
		return conn.WriteMessage(websocket.TextMessage, data)
	}
	if n.Poll {
		err = n.polled(r, send)
	} else {
		err = n.Follow(ctx, n.Since, func(event string, m *inbox.Message, until time.Time) error {
			if event == inbox.EventKeepalive {
				if err := conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout)); err != nil {
					return err
				}
			}
			return n.Events(event, m, until, send)
		})
	}
	if err == nil {
		bye := websocket.FormatCloseMessage(websocket.CloseServiceRestart, "")
		_ = conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second)) // it closes in any case
	}
	_ = conn.Close()
	cancel()
	reader.Wait()
	n.ended(r, err)
	return nil
}

// readSocket reads what a client answers to pings, and calls cancel when the client is
// gone.
func readSocket(conn *websocket.Conn, cancel func()) {
	defer cancel()
	conn.SetReadLimit(socketReadLimit)
	alive := func(string) error { return conn.SetReadDeadline(time.Now().Add(pongTimeout)) }
	conn.SetPongHandler(alive)
	if alive("") != nil {
		return
	}
	for {
		if _, _, err := conn.NextReader(); err != nil {
			return
		}
	}
}

// checkSocketOrigin returns a 403 if a page of another site opens a WebSocket, to which
// browsers do not apply the rules for other requests, unless its origin may send messages.
func (h *Inboxes) checkSocketOrigin(r *http.Request) error {
	asChange := r.Clone(r.Context()) // a GET is not checked
	asChange.Method = http.MethodPost
	if h.Resolved.CheckOrigin(asChange) != nil {
		return errForeignSocket
	}
	return nil
}

var errForeignSocket = api.Errorf(http.StatusForbidden, "a page of another site opens this WebSocket; the operator can allow its origin with trusted_origins")

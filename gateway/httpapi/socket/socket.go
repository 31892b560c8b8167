// Package socket sends texts to clients by WebSocket and ignores what the clients send.
package socket

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// The bounds of a WebSocket.
const (
	bufferSize = 1 << 10 // bytes
	readLimit  = 64
)

// buffers holds buffers for writing, so that an idle socket has none.
var buffers = &sync.Pool{}

// hijacker lets a WebSocket take over the connection of a wrapped response writer.
type hijacker struct{ http.ResponseWriter }

// Hijack implements http.Hijacker.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.ResponseWriter).Hijack()
}

// Timeouts bound how long a client may take.
type Timeouts struct {
	Write time.Duration // to take a text
	Pong  time.Duration // to answer a ping, counted from the one before
}

// Conn is a WebSocket to a client. One goroutine uses it.
type Conn struct {
	conn     *websocket.Conn
	timeouts Timeouts
	cancel   context.CancelFunc
	reader   sync.WaitGroup
}

// IsUpgrade reports whether a request asks for a WebSocket.
func IsUpgrade(r *http.Request) bool { return websocket.IsWebSocketUpgrade(r) }

// Open opens the WebSocket that r asks for. The caller has checked the origin of r, and closes the
// connection. The context ends when the client is gone. After an error, the client has its answer.
func Open(w http.ResponseWriter, r *http.Request, t Timeouts) (*Conn, context.Context, error) {
	u := websocket.Upgrader{
		ReadBufferSize: bufferSize, WriteBufferSize: bufferSize, WriteBufferPool: buffers,
		CheckOrigin: func(*http.Request) bool { return true },
	}
	conn, err := u.Upgrade(hijacker{w}, r, nil)
	if err != nil {
		return nil, nil, err
	}
	c := &Conn{conn: conn, timeouts: t}
	ctx, cancel := context.WithCancel(r.Context())
	c.cancel = cancel
	c.reader.Go(c.read)
	return c, ctx, nil
}

// Send sends a text.
func (c *Conn) Send(text []byte) error {
	_ = c.conn.SetWriteDeadline(time.Now().Add(c.timeouts.Write)) // the next write fails if the connection does not work
	return c.conn.WriteMessage(websocket.TextMessage, text)
}

// Ping asks whether the client is there.
func (c *Conn) Ping() error {
	return c.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(c.timeouts.Write))
}

// Bye tells the client that the server restarts.
func (c *Conn) Bye() {
	bye := websocket.FormatCloseMessage(websocket.CloseServiceRestart, "")
	_ = c.conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second)) // the connection is closed in any case
}

// Close closes the connection.
func (c *Conn) Close() {
	_ = c.conn.Close()
	c.cancel()
	c.reader.Wait()
}

// read reads the client's answers to pings, and ends the context when the client is gone.
func (c *Conn) read() {
	defer c.cancel()
	c.conn.SetReadLimit(readLimit)
	alive := func(string) error { return c.conn.SetReadDeadline(time.Now().Add(c.timeouts.Pong)) }
	c.conn.SetPongHandler(alive)
	if alive("") != nil {
		return
	}
	for {
		if _, _, err := c.conn.NextReader(); err != nil {
			return
		}
	}
}

package caddyhttp

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

func TestServer(t *testing.T) {
	s := gatewaytest.NewStation(t)
	caddyhttptest.Serve(t, "", "key k {\nurl "+s.NotifyURL("/k")+"\n}")
	for path, want := range map[string]int{"/notify/k": 200, "/prefix/notify/k/": 200, "/notify/none": 404, "/other": 404} {
		if got, body := caddyhttptest.Send(t.Context(), t, path, "body=x"); got != want {
			t.Errorf("%s: status %d, want %d: %s", path, got, want, body)
		}
	}
	if paths := s.Paths(); paths != "k k" {
		t.Errorf("messages at %q", paths)
	}
}

// TestReloadAndHangUp checks that a delivery continues after a reload, and
// after the client has disconnected.
func TestReloadAndHangUp(t *testing.T) {
	arrived, release, cut := make(chan struct{}, 2), make(chan struct{}), make(chan bool, 2)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		// The server notices the end of the connection only once the body is
		// read.
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		select {
		case <-release:
			cut <- false
		case <-r.Context().Done():
			cut <- true
		}
	}))
	defer slow.Close()
	key := "key k {\nurl json://" + strings.TrimPrefix(slow.URL, "http://") + "/\n}"
	caddyhttptest.Serve(t, "", key)

	patient := make(chan int, 1)
	go func() {
		status, _ := caddyhttptest.Send(context.Background(), t, "/notify/k", "body=x")
		patient <- status
	}()
	<-arrived
	ctx, hangUp := context.WithCancel(context.Background())
	hungUp := make(chan struct{})
	go func() {
		defer close(hungUp)
		_, _ = caddyhttptest.Send(ctx, t, "/notify/k", "body=x")
	}()
	<-arrived
	hangUp()
	<-hungUp
	caddyhttptest.Serve(t, "", "timeout 29s\n"+key)
	close(release)
	for range 2 {
		if <-cut {
			t.Error("a send was cut off")
		}
	}
	if status := <-patient; status != 200 {
		t.Errorf("the client that waited got status %d", status)
	}
}

// TestReloadKeepsConnections checks that connections are kept over a reload.
func TestReloadKeepsConnections(t *testing.T) {
	var opened atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	key := "key k {\nurl json://" + strings.TrimPrefix(s.URL, "http://") + "/\n}"
	for _, timeout := range []string{"10s", "11s", "12s"} {
		caddyhttptest.Serve(t, "", "timeout "+timeout+"\n"+key)
		if status, body := caddyhttptest.Send(t.Context(), t, "/notify/k", "body=x"); status != 200 {
			t.Fatal(body)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections were opened for three messages", n)
	}
}

// TestReloadClosesConnections checks that a reload closes the connections to
// destinations that the new configuration does not have, keeps the others, and
// closes all with the last key.
func TestReloadClosesConnections(t *testing.T) {
	b := newMQTTBroker(t)
	keys := map[string]string{}
	for _, name := range []string{"one", "two", "three"} {
		keys[name] = "key " + name + " {\nurl mqtt://" + b.address + "/" + name + "?client_id=" + name + "&session=yes\n}\n"
	}
	// Of three keys, one is of the site, one of the app, and one moves between
	// them.
	caddyhttptest.Serve(t, "notify {\n"+keys["one"]+keys["three"]+"}", keys["two"])
	for name := range keys {
		if status, body := caddyhttptest.Send(t.Context(), t, "/notify/"+name, "body=x"); status != 200 {
			t.Fatal(body)
		}
	}
	before := b.connected()
	if len(before) != 3 {
		t.Fatalf("connected: %v", before)
	}
	caddyhttptest.Serve(t, "notify {\n"+keys["one"]+"}", keys["three"])
	gatewaytest.Eventually(t, func() bool { return slices.Equal(b.connected(), before[:2]) }) // one and three
	caddyhttptest.Serve(t, "", "")
	gatewaytest.Eventually(t, func() bool { return len(b.connected()) == 0 })
}

// mqttBroker is a server of MQTT 3.1.1 that takes all messages.
type mqttBroker struct {
	address string

	mu      sync.Mutex
	count   int
	clients map[string]bool // the identifiers of open connections, each with the number of its connection
}

func newMQTTBroker(t *testing.T) *mqttBroker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &mqttBroker{address: l.Addr().String(), clients: map[string]bool{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			wg.Go(func() {
				defer conn.Close()
				stop := context.AfterFunc(t.Context(), func() { _ = conn.Close() })
				defer stop()
				b.serve(conn)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return b
}

// serve answers CONNECT and PINGREQ until the connection ends.
func (b *mqttBroker) serve(conn net.Conn) {
	var client string
	r := bufio.NewReader(conn)
	for {
		first, err := r.ReadByte()
		if err == nil {
			var length uint64
			if length, err = binary.ReadUvarint(r); err == nil {
				packet := make([]byte, length)
				if _, err = io.ReadFull(r, packet); err == nil {
					switch first >> 4 {
					case 1: // after the name of the protocol, the level, flags and 16 bits, the identifier of the client
						client = b.connect(string(packet[12:][:packet[11]]))
						_, err = conn.Write([]byte{0x20, 2, 0, 0})
					case 12:
						_, err = conn.Write([]byte{0xd0, 0})
					}
				}
			}
		}
		if err != nil {
			b.mu.Lock()
			delete(b.clients, client)
			b.mu.Unlock()
			return
		}
	}
}

func (b *mqttBroker) connect(id string) (client string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count++
	client = fmt.Sprintf("%s %d", id, b.count)
	b.clients[client] = true
	return client
}

// connected returns the identifiers of the clients, each with the number of its connection.
func (b *mqttBroker) connected() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.clients))
}

// TestSecretsStayHidden checks that secrets of URLs, of the configuration and
// of clients, are in no log, even at level debug, and in no response of the
// admin API.
func TestSecretsStayHidden(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "caddy.log")
	t.Setenv("NOTIFY_TEST_SECRET", "secretsecret")
	s := gatewaytest.NewStation(t)
	address := strings.TrimPrefix(s.URL, "http://")
	const gone = "127.0.0.1:1"
	caddyhttptest.Serve(t, "debug\nlog {\noutput file "+file+"\nlevel DEBUG\n}\nservers {\ntrace\n}",
		open+"key k {\nurl json://user:{env.NOTIFY_TEST_SECRET}@"+address+"/refuse a\nurl json://user:{env.NOTIFY_TEST_SECRET}@"+gone+"/ b\n}")
	var answers strings.Builder
	for _, form := range []string{
		"body=x", "body=x&tag=z", "body=x&type=bogus",
		"body=x&urls=json://user:secretsecret@" + gone,
		"body=x&urls=nonsense://secretsecret",
		"body=x&attach=http://user:secretsecret@" + gone + "/secretsecret",
	} {
		for _, path := range []string{"/notify/k", "/notify"} {
			_, body := caddyhttptest.Send(t.Context(), t, path, form)
			answers.WriteString(body)
		}
	}
	config := caddyhttptest.Do(t, http.MethodGet, "http://"+caddyhttptest.Admin+"/config/", "").Body
	if !strings.Contains(config, "{env.NOTIFY_TEST_SECRET}") {
		t.Errorf("the configuration does not show the placeholder: %s", config)
	}
	log := caddyhttptest.ReadLog(t, file, "delivery failed")
	for name, text := range map[string]string{"log": log, "answers": answers.String(), "configuration": config} {
		if i := strings.Index(text, "secretsecret"); i >= 0 {
			t.Errorf("%s: …%s", name, text[max(0, i-300):i+12])
		}
	}
	if !strings.Contains(log, "request rejected") {
		t.Error("refused requests are not in the debug log")
	}
	caddyhttptest.Serve(t, "", "") // so that nothing writes to the log any more
}

package safety

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/smtp"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// otherSite returns the end of the block of the first site, and another site
// with the options of block.
func otherSite(address, block string) string {
	host, _, _ := net.SplitHostPort(address)
	return "\n}\n}\nhttp://" + address + " {\nbind " + host + "\nnotify {\n" + block
}

// at returns the gateway with the address of another of its sites.
func (g *gateway) at(address string) *gateway {
	other := *g
	other.url = "http://" + address
	return &other
}

// internal is a web server at an address of this machine. Its name is the host name of the machine
// if that leads to the address, and else the address.
type internal struct {
	name, address, port string
	status              atomic.Int32 // of its answers
	reached             atomic.Int32 // requests
}

func newInternal(t *testing.T) *internal {
	v := &internal{name: "127.0.0.1", address: "127.0.0.1"}
	v.status.Store(http.StatusOK)
	if name, err := os.Hostname(); err == nil {
		addresses, _ := net.DefaultResolver.LookupHost(t.Context(), name)
		for _, a := range addresses {
			if l, err := net.Listen("tcp4", a+":0"); err == nil {
				_ = l.Close()
				v.name, v.address = name, a
				break
			}
		}
	}
	s := serveHTTP(t, v.address, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		v.reached.Add(1)
		w.WriteHeader(int(v.status.Load()))
	})
	_, v.port, _ = net.SplitHostPort(authority(s))
	return v
}

// url returns a notification URL that leads to the server.
func (v *internal) url(path string) string {
	return "json://" + net.JoinHostPort(v.name, v.port) + path
}

// save saves a key.
func (g *gateway) save(key, config string) {
	g.t.Helper()
	if r := g.post("/add/"+key, message{"format": "text", "config": config}); r.Status != http.StatusOK {
		g.t.Fatalf("saving %s: %d %s", key, r.Status, r.Body)
	}
}

// accept posts a message that the gateway stores before it answers, and returns its
// ID.
func (g *gateway) accept(path string, m message) string {
	g.t.Helper()
	var status int
	var text string
	err := whileReplaced(func() (err error) {
		status, _, text, err = g.tryPost(path, m, "Prefer", "respond-async")
		return err
	})
	var a struct{ ID string }
	if err != nil || status != http.StatusAccepted || json.Unmarshal([]byte(text), &a) != nil || a.ID == "" {
		g.t.Fatalf("%s: %d %s %v", path, status, text, err)
	}
	return a.ID
}

// whileReplaced repeats a request while its connection is closed by a server that a
// reload has replaced.
func whileReplaced(request func() error) (err error) {
	for range 5 {
		if err = request(); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			return err
		}
	}
	return err
}

// storedMessage is the state of a message in the queue.
type storedMessage struct {
	status int // of the answer
	text   string
	State  string
}

func (g *gateway) message(id string) (m storedMessage) {
	g.t.Helper()
	m.status, m.text = g.get(g.url+"/notify/messages/"+id, "application/json")
	_ = json.Unmarshal([]byte(m.text), &m)
	return m
}

// final waits until a message is not queued any more.
func (g *gateway) final(id string) (m storedMessage) {
	g.t.Helper()
	eventually(g.t, "the message is final", func() bool { m = g.message(id); return m.status != http.StatusOK || m.State != "queued" })
	return m
}

// adminPost posts to the admin API.
func (g *gateway) adminPost(path string) {
	g.t.Helper()
	var resp *http.Response
	err := whileReplaced(func() (err error) {
		resp, err = g.client.Post(g.adminURL+path, "application/json", nil)
		return err
	})
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		g.t.Fatalf("%s: %d %s", path, resp.StatusCode, text)
	}
}

// allow, closed, use and manage are options of a site: its clients may reach an
// address; they may reach public addresses only; it uses the saved keys of a space;
// it also changes them.
func allow(address string) string { return "egress {\nallow " + address + "\n}\n" }

func use(space string) string { return "configs " + space + "\n" }

func manage(space string) string { return "configs " + space + " {\nmanage open\n}\n" }

const closed = "egress {\ndeny 192.0.2.1\n}\n"

// TestSiteEgress checks that a saved key that another site, or the global block for
// mail, may send to an internal address does not lead there from a site whose
// clients may not reach it. The queue once made a delivery under the rules of the
// first site that had the URL.
func TestSiteEgress(t *testing.T) {
	racetest.SkipIfSlow(t)
	t.Parallel()
	const mail, first, second = "mail", "first", "second"
	for _, tt := range []struct{ name, open, shut, other string }{
		{"an open site behind it", second, use("team"), manage("team")},
		{"an open site before it", first, use("team"), manage("team")},
		{"a site that trusts its own saved keys", second, manage("a"), "configs b {\nmanage open\ntrust operator\n}\n"},
		{"mail", mail, "", "configs\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := newInternal(t)
			options, address, mailAddress := queueOption(newFolder(t)), porttest.Address(), porttest.Address()
			config := v.url("/meta") + "\n1:ops=" + v.url("/one") + "\n2:ops=" + v.url("/two")
			open := allow(v.address) + tt.other
			g := prepare(t, options, "")
			shut, other := g, g.at(address)
			switch tt.open {
			case mail:
				g.configure(options, allow(v.address)+manage(""))
				g.run()
				g.save("k", config)
				options = strings.TrimSuffix(options, "}") + "smtp " + mailAddress + "\n" + open + "}"
				g.reload(options, closed)
			case first:
				g.configure(options, open+otherSite(address, closed+tt.shut))
				g.run()
				shut, other = other, g
				other.save("k", config)
			case second:
				before := allow(v.address) + tt.shut + otherSite(address, open)
				g.configure(options, before)
				g.run()
				other.save("k", config)
				if strings.Contains(tt.shut, "manage") {
					shut.save("k", config)
				}
				g.reload(options, closed+tt.shut+otherSite(address, open))
			}
			for _, m := range []message{{"body": "x"}, {"body": "x", "tag": "ops"}} {
				id := shut.accept("/notify/k", m)
				if s := shut.final(id); s.State != "failed" || !strings.Contains(s.text, "may not reach it") {
					t.Errorf("%v: the message is %s: %s", m, s.State, s.text)
				}
				g.adminPost("/notify/queue/" + id + "/retry")
				if s := shut.final(id); s.State != "failed" {
					t.Errorf("%v: tried again, the message is %s: %s", m, s.State, s.text)
				}
				if r := shut.post("/notify/k", m); r.Status != http.StatusFailedDependency || !strings.Contains(r.text(), "may not reach it") {
					t.Errorf("%v: sent at once: %d %s", m, r.Status, r.Body)
				}
			}
			if strings.Contains(tt.shut, "manage") {
				r := shut.do("/cfg/k?test", "application/x-www-form-urlencoded", strings.NewReader("destination=1"))
				if r.Status != http.StatusFailedDependency || !strings.Contains(r.text(), "may not reach it") {
					t.Errorf("a test from the page: %d %s", r.Status, r.Body)
				}
			}
			if n := v.reached.Load(); n > 0 {
				t.Errorf("the internal address was reached %d times", n)
			}
			// Where it is allowed, the key works.
			if tt.open == mail {
				if err := smtp.SendMail(mailAddress, nil, "a@example.com", []string{"k@example.com"}, []byte("Subject: x\r\n\r\nx\r\n")); err != nil {
					t.Errorf("a mail: %v", err)
				}
			} else if id := other.accept("/notify/k", message{"body": "x"}); other.final(id).State != "delivered" {
				t.Errorf("at the open site: %s", other.message(id).text)
			}
			if v.reached.Load() == 0 {
				t.Error("the address is not reached where it is allowed")
			}
		})
	}
}

// TestSiteEgressChanges checks that a delivery that waits is made under the rules of now or the
// rules when its message was accepted, whichever are stricter.
func TestSiteEgressChanges(t *testing.T) {
	racetest.SkipIfSlow(t)
	t.Parallel()
	v := newInternal(t)
	options, address := queueOption(newFolder(t)), porttest.Address()
	open, shut := allow(v.address)+use("team"), closed+use("team")
	saverAddress := porttest.Address()
	saver := otherSite(saverAddress, allow(v.address)+manage("team"))
	g := start(t, options, open+otherSite(address, open)+saver)
	g.at(saverAddress).save("k", v.url("/meta"))

	// The rules become stricter while a delivery waits for another attempt.
	v.status.Store(http.StatusServiceUnavailable)
	waits := g.accept("/notify/k", message{"body": "x"})
	fromClient := g.accept("/notify", message{"body": "x", "urls": v.url("/client")})
	eventually(t, "both have failed once", func() bool {
		return strings.Contains(g.message(waits).text, "503") && strings.Contains(g.message(fromClient).text, "503")
	})
	v.status.Store(http.StatusOK)
	g.reload(options, shut+otherSite(address, open)+saver)
	before := v.reached.Load()
	for _, id := range []string{waits, fromClient} {
		if s := g.final(id); s.State != "failed" || !strings.Contains(s.text, "may not reach it") {
			t.Errorf("after a reload with stricter rules, the message is %s: %s", s.State, s.text)
		}
	}

	// Looser rules do not hold for what came in before.
	id := g.accept("/notify/k", message{"body": "x"})
	if s := g.final(id); s.State != "failed" {
		t.Errorf("the message is %s: %s", s.State, s.text)
	}
	g.reload(options, open+otherSite(address, open)+saver)
	g.adminPost("/notify/queue/" + id + "/retry")
	if s := g.final(id); s.State != "failed" || !strings.Contains(s.text, "may not reach it") {
		t.Errorf("after a reload with looser rules, the message is %s: %s", s.State, s.text)
	}

	// The site is gone. The other one allows the address.
	g.reload(options, open+otherSite(address, shut)+saver)
	other := g.at(address)
	id = other.accept("/notify/k", message{"body": "x"})
	if s := other.final(id); s.State != "failed" {
		t.Errorf("the message is %s: %s", s.State, s.text)
	}
	g.reload(options, open+saver)
	g.adminPost("/notify/queue/" + id + "/retry")
	eventually(t, "it was tried again", func() bool {
		_, text := g.get(g.adminURL+"/notify/queue/dead", "application/json")
		return strings.Contains(text, id)
	})
	if n := v.reached.Load() - before; n > 0 {
		t.Errorf("the internal address was reached %d times", n)
	}
}

// TestSiteMoved checks that a message that waits arrives although the address of
// its site has changed.
func TestSiteMoved(t *testing.T) {
	t.Parallel()
	c := newReceiver(t, nil)
	c.silence()
	options, address := queueOption(newFolder(t), "wait 10ms"), porttest.Address()
	key := "key k {\nurl " + c.url + "/\n}\n"
	g := start(t, options, otherSite(address, key))
	g.at(address).queueUp("/notify/k", 1, 8) // more than are sent at once
	g.reload(options, otherSite(porttest.Address(), key))
	c.release()
	waitArrived(t, func() []string { return c.missing(numbers(1, 8)) })
}

// TestSiteIdempotencyKey checks that an idempotency key is known only at the site
// and the address that it came to. A message to another site was once not sent,
// and got the first one's answer.
func TestSiteIdempotencyKey(t *testing.T) {
	t.Parallel()
	c := newReceiver(t, nil)
	address := porttest.Address()
	options := strings.TrimSuffix(queueOption(newFolder(t)), "}") + "key k {\nurl " + c.url + "/\n}\n}"
	block := "from other {\nbody {{.body}}\ntitle {{.title}}\n}\n"
	g := start(t, options, block+otherSite(address, block))
	ids := map[string]string{}
	for range 2 {
		for _, address := range []string{g.url + "/notify/k", g.at(address).url + "/notify/k", g.url + "/notify/k/other"} {
			base, path, _ := strings.Cut(address, "/notify")
			site := *g
			site.url = base
			status, _, text, err := site.tryPost("/notify"+path, message{"title": "1", "body": "x"}, "Idempotency-Key", "same")
			var a struct{ ID string }
			if err != nil || status != http.StatusOK || json.Unmarshal([]byte(text), &a) != nil {
				t.Fatalf("%s: %d %s %v", address, status, text, err)
			}
			if before, ok := ids[address]; ok && before != a.ID {
				t.Errorf("%s: the same request is the message %s, and then %s", address, before, a.ID)
			}
			ids[address] = a.ID
		}
	}
	// On a machine that does much else, a message is queued first.
	eventually(t, "each message arrives", func() bool { return c.times("1") >= len(ids) })
	if n := c.times("1"); n != len(ids) {
		t.Errorf("%d messages were sent, want %d: %v", n, len(ids), ids)
	}
}

// TestSiteNames checks that a site knows its messages and idempotency keys when it listens
// elsewhere, as another gateway with another bind does. A name joins the two sides of a change of
// ports. Sites that differ only in bind need names, which separate them.
func TestSiteNames(t *testing.T) {
	t.Parallel()
	c := newReceiver(t, nil)
	options, port, green := queueOption(newFolder(t)), porttest.Free(), porttest.Free()
	here, there := porttest.Host(), porttest.Host()
	key := "key k {\nurl " + c.url + "/\n}\n"
	at := func(port, bind, settings string) string {
		return "\n}\n}\n:" + port + " {\nbind " + bind + "\nnotify {\n" + settings + key
	}
	g := start(t, options, at(port, here, ""))
	site := func(host, port string) *gateway {
		other := *g
		other.url = "http://" + host + ":" + port
		return &other
	}
	send := func(g *gateway, key string) (id string) {
		t.Helper()
		status, _, text, err := g.tryPost("/notify/k", message{"title": key, "body": "x"}, "Idempotency-Key", key)
		var a struct{ ID string }
		if err != nil || status != http.StatusOK || json.Unmarshal([]byte(text), &a) != nil {
			t.Fatalf("%s: %d %s %v", g.url, status, text, err)
		}
		return a.ID
	}
	check := func(name string, first, second *gateway, same bool) {
		t.Helper()
		id, status := send(first, name), http.StatusNotFound
		if same {
			status = http.StatusOK
		}
		if other := send(second, name); other == id != same {
			t.Errorf("%s: the same request is the messages %s and %s", name, id, other)
		}
		if m := second.message(id); m.status != status {
			t.Errorf("%s: the message is %d %s, want %d", name, m.status, m.text, status)
		}
	}
	id := send(site(here, port), "bind")
	g.reload(options, at(port, there, ""))
	moved := site(there, port)
	if other := send(moved, "bind"); other != id || moved.message(id).status != http.StatusOK {
		t.Errorf("the same request is the messages %s and %s, and the first one is %d", id, other, moved.message(id).status)
	}
	g.reload(options, at(port, here, "site x\n")+at(green, here, "site x\n"))
	check("one name", site(here, port), site(here, green), true)
	g.reload(options, at(port, here, "site x\n")+at(port, there, "site y\n"))
	check("two names", site(here, port), moved, false)
	g.stop()
	g.configure(options, at(port, here, "")+at(port, there, ""))
	g.begin()
	if err := <-g.ended; err == nil || !strings.Contains(g.log(), "write site \u003cname\u003e into each") &&
		!strings.Contains(g.log(), "write site <name> into each") {
		t.Errorf("sites that differ only in bind are loaded: %v", err)
	}
	g.ended <- nil
}

// TestSiteMessages checks that a message can be read, cancelled and seen on pages
// only at the site that accepted it, also after a reload and a restart.
func TestSiteMessages(t *testing.T) {
	t.Parallel()
	c := newReceiver(t, nil)
	v := newInternal(t)
	v.status.Store(http.StatusServiceUnavailable)
	address := porttest.Address()
	options := strings.TrimSuffix(queueOption(newFolder(t)), "}") +
		"key fine {\nurl " + c.url + "/\n}\nkey waits {\nurl " + v.url("/") + "\n}\n}"
	block := manage("team")
	g := start(t, options, block+otherSite(address, block))
	other := g.at(address)
	r := g.post("/notify/fine", message{"title": "1", "body": "x"}) // its results are stored after the answer
	var fine struct{ ID string }
	if err := json.Unmarshal([]byte(r.Body), &fine); err != nil || r.Status != http.StatusOK {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	stored, waits := g.accept("/notify/fine", message{"title": "2", "body": "x"}), g.accept("/notify/waits", message{"body": "x"})
	g.final(stored)
	check := func(when string) {
		t.Helper()
		for _, id := range []string{fine.ID, stored, waits} {
			if m := g.message(id); m.status != http.StatusOK {
				t.Errorf("%s: %s at its site: %d %s", when, id, m.status, m.text)
			}
			if m := other.message(id); m.status != http.StatusNotFound {
				t.Errorf("%s: %s at another site: %d %s", when, id, m.status, m.text)
			}
		}
		r, err := http.NewRequest(http.MethodDelete, other.url+"/notify/messages/"+waits, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a := other.ask(r); a.Status != http.StatusNotFound || g.message(waits).State != "queued" {
			t.Errorf("%s: another site cancels a message: %d %s", when, a.Status, g.message(waits).text)
		}
		a := other.do("/notify/console/keys/waits?drop", "application/x-www-form-urlencoded",
			strings.NewReader(url.Values{"id": {waits}}.Encode()))
		if a.Status != http.StatusNotFound || g.message(waits).State != "queued" {
			t.Errorf("%s: a page of another site drops a message: %d %s", when, a.Status, g.message(waits).text)
		}
		for site, shown := range map[*gateway]bool{g: true, other: false} {
			if _, text := site.get(site.url+"/notify/console/keys/waits?tab=messages", "text/html"); strings.Contains(text, waits) != shown {
				t.Errorf("%s: the page of the key at %s: shown is %v", when, site.url, !shown)
			}
		}
		if _, text := g.get(g.adminURL+"/notify/queue", "application/json"); !strings.Contains(text, waits) {
			t.Errorf("%s: the admin API lacks the message: %s", when, text)
		}
	}
	for _, key := range []string{"fine", "waits"} {
		if _, text := other.get(other.url+"/notify/console/keys/"+key+"?tab=messages", "text/html"); !strings.Contains(text,
			"No message has come in") ||
			strings.Contains(text, `">Delivered</span>`) {
			t.Errorf("the history of %s at another site: %s", key, text)
		}
	}
	if _, text := g.get(g.url+"/notify/console/keys/fine?tab=messages", "text/html"); !strings.Contains(text, `">Delivered</span>`) {
		t.Errorf("the history at its own site: %s", text)
	}
	check("at first")
	// There is another site, and the settings change.
	g.reload(options, "timeout 20s\n"+block+otherSite(porttest.Address(), "")+otherSite(address, block))
	check("after a reload")
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	g.run()
	check("after a restart")
	g.adminPost("/notify/queue/" + waits + "/retry")
}

// TestSiteDrops checks that the buttons of the console that drop what waits for a
// destination leave what waits there for a key of another site. They once dropped that,
// too.
func TestSiteDrops(t *testing.T) {
	t.Parallel()
	v := newInternal(t)
	v.status.Store(http.StatusServiceUnavailable)
	address, folder := porttest.Address(), newFolder(t)
	key := func(name string) string { return "key " + name + " {\nurl " + v.url("/") + "\n}\n" }
	options := strings.TrimSuffix(queueOption(folder), "}") + key("shared") + "}"
	block := key("own") + "console {\nmanage open\n}\n"
	g := start(t, options, block+otherSite(address, block))
	other := g.at(address)
	waits := func(g *gateway, name string) string {
		t.Helper()
		id := g.accept("/notify/"+name, message{"body": "x"})
		eventually(t, "it has failed once", func() bool { return strings.Contains(g.message(id).text, "503") })
		return id
	}
	for _, page := range []string{"/notify/console/queue?drop", "/notify/console/keys/own?drop"} {
		ours, theirs, shared := waits(g, "own"), waits(other, "own"), waits(other, "shared")
		_, text := g.get(g.url+"/notify/console/keys/own", "text/html")
		m := regexp.MustCompile(`name="?destination"? value="?([A-Za-z0-9_-]{10,})`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no destination on the page of the key: %s", text)
		}
		// The outcome of an attempt can be seen a moment before the delivery can be dropped.
		eventually(t, page+" drops what is the site's", func() bool {
			r := g.do(page, "application/x-www-form-urlencoded", strings.NewReader(url.Values{"destination": {m[1]}}.Encode()))
			if r.Status != http.StatusOK {
				t.Errorf("%s: %d %s", page, r.Status, r.Body)
			}
			return g.message(ours).State == "cancelled" && other.message(shared).State == "cancelled"
		})
		for what, tt := range map[string]struct {
			m    storedMessage
			want string
		}{
			"a message of the site":                                 {g.message(ours), "cancelled"},
			"a message of the other site":                           {other.message(theirs), "queued"},
			"a message to a global key, which the sites also share": {other.message(shared), "cancelled"},
		} {
			if tt.m.State != tt.want {
				t.Errorf("%s: %s is %s, want %s", page, what, tt.m.State, tt.want)
			}
		}
	}
}

// TestSavedURLForbidden checks that a saved URL that the site forbids by now fails
// with the reason, and that the other URLs of its key are sent to. Messages for
// such a key once got a 503 for ever.
func TestSavedURLForbidden(t *testing.T) {
	t.Parallel()
	c := newReceiver(t, nil)
	v := newInternal(t)
	options := ""
	g := start(t, options, allow("127.0.0.0/8 "+v.address)+manage(""))
	text := c.url + "/\n" + strings.Replace(v.url("/"), v.name, "127.9.9.9", 1) + "\nform://127.0.0.1:" + v.port + "\n"
	g.save("k", text)
	block := allow("127.0.0.1") + manage("") + "services {\ndeny form\n}\n"
	g.reload(options, block)
	eventually(t, "the new server answers", func() bool { // the old one may close connections that it gets
		resp, err := g.client.Get(g.url + "/up")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil
	})
	for n := range 2 {
		r := g.post("/notify/k", message{"title": fmt.Sprint(n), "body": "x"})
		if r.Status != http.StatusFailedDependency || len(r.Results) != 3 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		if r.Results[0].Status != "delivered" || c.times(fmt.Sprint(n)) != 1 {
			t.Errorf("the allowed URL: %+v", r.Results[0])
		}
		if f := r.Results[1]; f.Status != "failed" || !strings.Contains(f.Error, "127.9.9.9 is loopback") {
			t.Errorf("the forbidden address: %+v", f)
		}
		if f := r.Results[2]; f.Status != "failed" || f.Service != "Form" || !strings.Contains(f.Error, "the setting services forbids it") {
			t.Errorf("the forbidden service: %+v", f)
		}
	}
	if n := v.reached.Load(); n > 0 {
		t.Errorf("a forbidden URL was reached %d times", n)
	}
	for _, line := range strings.Fields(text)[1:] {
		if r := g.post("/add/new", message{"format": "text", "config": line}); r.Status != http.StatusBadRequest {
			t.Errorf("%s is saved: %d %s", line, r.Status, r.Body)
		}
	}
	// What is stored is not changed.
	if r := g.post("/get/k", message{}); !strings.Contains(r.Body, "127.9.9.9") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

// TestHeldEgress checks that what a rule holds goes no further than the rules of the
// site that accepted it allow, then and now, also as part of a digest. A digest once
// went under the rules of the site of its first message, as they were when it was sent.
func TestHeldEgress(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var arrived []string
	s := serveHTTP(t, "127.0.0.1", func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		arrived = append(arrived, string(body))
	})
	now := time.Now().UTC()
	always := fmt.Sprintf("quiet %02d:00-%02d:00 UTC\n", now.Add(-11*time.Hour).Hour(), now.Add(12*time.Hour).Hour())
	options, address := queueOption(newFolder(t)), porttest.Address()
	open := allow("127.0.0.1") + "configs team {\nmanage open\n%s}\n"
	shut, opened := closed+"configs team {\n%s}\n", allow("127.0.0.1")+"configs team {\n%s}\n"
	with := func(block, rules string) string { return fmt.Sprintf(block, rules) }
	g := start(t, options, with(shut, always)+otherSite(address, with(open, always)))
	other := g.at(address)
	other.save("k", "json://"+authority(s)+"/")

	// digest returns the message that tells the messages with these IDs.
	digest := func(g *gateway, ids ...string) (m storedMessage) {
		t.Helper()
		eventually(t, "the messages are part of a digest", func() bool {
			var by []string
			for _, id := range ids {
				var stored struct{ Results []struct{ Rule, By string } }
				if err := json.Unmarshal([]byte(g.message(id).text), &stored); err != nil ||
					len(stored.Results) != 1 || stored.Results[0].Rule != "digested" {
					return false
				}
				by = append(by, stored.Results[0].By)
			}
			m = g.message(by[0])
			return len(slices.Compact(by)) == 1 && m.status == http.StatusOK && m.State != "queued"
		})
		return m
	}
	ofShut := []string{g.accept("/notify/k", message{"body": "shut 1"}), g.accept("/notify/k", message{"body": "shut 2"})}
	ofOpen := []string{other.accept("/notify/k", message{"body": "open 1"}), other.accept("/notify/k", message{"body": "open 2"})}
	g.reload(options, with(shut, "")+otherSite(address, with(open, "")))
	if m := digest(g, ofShut...); m.State != "failed" || !strings.Contains(m.text, "may not reach it") {
		t.Errorf("the digest of the site that may not reach the address is %s: %s", m.State, m.text)
	}
	if m := digest(other, ofOpen...); m.State != "delivered" {
		t.Errorf("the digest of the site that may is %s: %s", m.State, m.text)
	}

	// The rules become looser while messages are held.
	g.reload(options, with(shut, always)+otherSite(address, with(open, always)))
	ofShut = []string{g.accept("/notify/k", message{"body": "shut 3"}), g.accept("/notify/k", message{"body": "shut 4"})}
	g.reload(options, with(opened, "")+otherSite(address, with(open, "")))
	if m := digest(g, ofShut...); m.State != "failed" || !strings.Contains(m.text, "may not reach it") {
		t.Errorf("after a reload with looser rules, the digest is %s: %s", m.State, m.text)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(arrived) != 1 || !strings.Contains(arrived[0], "open 1") || strings.Contains(arrived[0], "shut") {
		t.Errorf("these messages arrived: %q", arrived)
	}
}

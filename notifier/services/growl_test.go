package services

import (
	"bufio"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// growlDesktop stands in for a desktop with GNTP 1.0. It accepts one request on
// each connection, which must be signed if there is a password, and notifications
// only from registered applications.
type growlDesktop struct {
	password string
	log      servicetest.Log

	mu   sync.Mutex
	apps []string
}

func (d *growlDesktop) start(t *testing.T, at string) *servicetest.Server {
	t.Helper()
	return servicetest.Serve(t, at, nil, func(conn net.Conn) {
		_, _ = io.WriteString(conn, d.serve(bufio.NewReader(conn)))
	})
}

func (d *growlDesktop) serve(r *bufio.Reader) string {
	line, err := r.ReadString('\n')
	f := strings.Fields(line)
	if err != nil || len(f) < 3 || f[0] != "GNTP/1.0" || f[2] != "NONE" || !strings.HasSuffix(line, "\r\n") {
		return growlErrorAnswer("300", "invalid request")
	}
	if !d.signed(f[3:]) {
		return growlErrorAnswer("400", "not authorized")
	}
	head := growlBlock(r)
	app := head.Get("Application-Name")
	d.mu.Lock()
	defer d.mu.Unlock()
	if f[1] == "REGISTER" {
		n, _ := strconv.Atoi(head.Get("Notifications-Count"))
		for range n {
			kind := growlBlock(r)
			d.log.Add(fmt.Sprintf("REGISTER %s: %s %s", app, kind.Get("Notification-Name"), kind.Get("Notification-Enabled")))
		}
		d.apps = append(d.apps, app)
		return "GNTP/1.0 -OK NONE\r\nResponse-Action: REGISTER\r\n\r\n"
	}
	if head.Get("Notification-Text") == "refuse this" {
		return growlErrorAnswer("500", strings.Repeat("error ", 1000))
	}
	if !slices.Contains(d.apps, app) {
		return growlErrorAnswer("401", "unknown application")
	}
	picture := ""
	if id, ok := strings.CutPrefix(head.Get("Notification-Icon"), "x-growl-resource://"); ok {
		block := growlBlock(r)
		n, _ := strconv.Atoi(block.Get("Length"))
		b := make([]byte, n)
		_, _ = io.ReadFull(r, b)
		if block.Get("Identifier") != id {
			return growlErrorAnswer("300", "unknown resource")
		}
		picture = string(b)
		head.Set("Notification-Icon", "")
	}
	replaces := ""
	if id := head.Get("Notification-Coalescing-Id"); id != "" {
		replaces = fmt.Sprintf("|id=%s|replaces=%s", head.Get("Notification-Id"), id)
	}
	d.log.Add(fmt.Sprintf("NOTIFY %s|%s|%s|%q|sticky=%s|priority=%s|icon=%s%s",
		app, head.Get("Notification-Name"), head.Get("Notification-Title"),
		head.Get("Notification-Text"), head.Get("Notification-Sticky"),
		head.Get("Notification-Priority"), head.Get("Notification-Icon"), picture) + replaces)
	return "GNTP/1.0 -OK NONE\r\nResponse-Action: NOTIFY\r\n\r\n"
}

// growlBlock reads headers up to an empty line. Only CR LF ends a line.
func growlBlock(r *bufio.Reader) textproto.MIMEHeader {
	h := textproto.MIMEHeader{}
	line := ""
	for {
		part, err := r.ReadString('\n')
		line += part
		if err != nil || line == "\r\n" {
			return h
		}
		if full, ok := strings.CutSuffix(line, "\r\n"); ok {
			name, value, _ := strings.Cut(full, ": ")
			h.Add(name, value)
			line = ""
		}
	}
}

// signed checks "ALGORITHM:HASH.SALT".
func (d *growlDesktop) signed(f []string) bool {
	if d.password == "" {
		return len(f) == 0
	}
	if len(f) != 1 {
		return false
	}
	algorithm, rest, _ := strings.Cut(f[0], ":")
	sum, saltText, _ := strings.Cut(rest, ".")
	salt, err := hex.DecodeString(saltText)
	algorithms := map[string]func() hash.Hash{"MD5": md5.New, "SHA256": sha256.New}
	if algorithms[algorithm] == nil || err != nil || len(salt) < 4 {
		return false
	}
	key, keyHash := algorithms[algorithm](), algorithms[algorithm]()
	key.Write(append([]byte(d.password), salt...))
	keyHash.Write(key.Sum(nil))
	return strings.EqualFold(sum, hex.EncodeToString(keyHash.Sum(nil)))
}

func growlErrorAnswer(code, text string) string {
	return "GNTP/1.0 -ERROR NONE\r\nError-Code: " + code + "\r\nError-Description: " + text + "\r\n\r\n"
}

func TestGrowl(t *testing.T) {
	icons := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/info-72x72" {
			fmt.Fprint(w, "PNG\r\n\r\nbytes")
			return
		}
		http.NotFound(w, r)
	}))
	defer icons.Close()
	const register = "REGISTER Caddy: New Messages True"
	const plain = `NOTIFY Caddy|New Messages|Disk almost full|"Volume /data is at 91% on host-7"|sticky=True|priority=0|icon=`
	icon := icons.URL + "/info-72x72"
	cases := []struct {
		password, rest string
		want           string
	}{
		{"", "", plain + icon},
		{"s3cret word", "", plain + icon},
		{"", "?image=no", plain},
		{"", "?version=1", plain + "PNG\r\n\r\nbytes"},
		{"", "?version=1&image=no", plain},
		{"", "?sticky=no", strings.Replace(plain, "sticky=True", "sticky=", 1) + icon},
		{"", "?priority=emergency", strings.Replace(plain, "priority=0", "priority=2", 1) + icon},
		{"", "?priority=-2", strings.Replace(plain, "priority=0", "priority=-2", 1) + icon},
		{"", "?priority=nonsense&version=7", plain + icon},
	}
	var urls []string
	for _, c := range cases {
		urls = append(urls, c.rest)
		d := &growlDesktop{password: c.password}
		at := d.start(t, "").Addr()
		user := ""
		if c.password != "" {
			user = strings.ReplaceAll(c.password, " ", "%20") + "@"
		}
		m := servicetest.Message(t, "plain")
		m.Identity.Icon = icons.URL + "/{type}-{size}"
		if r := servicetest.Send(t, servicetest.NewSender(t), "growl://"+user+at+c.rest, m, 5*time.Second); r.Err != nil {
			t.Errorf("%s: %v", c.rest, r.Err)
			continue
		}
		d.log.Expect(t, register, c.want)
	}
	expectParams(t, "Growl", urls)
}

// A notification about an incident replaces the one before it.
func TestGrowlIncident(t *testing.T) {
	d := &growlDesktop{}
	at := d.start(t, "").Addr()
	s := servicetest.NewSender(t)
	id := servicetest.Message(t, "open").Incident.ID
	want := []string{"REGISTER Caddy: New Messages True"}
	for _, name := range []string{"open", "resolved"} {
		m := servicetest.Message(t, name)
		if r := servicetest.Send(t, s, "growl://"+at+"?image=no", m, 5*time.Second); r.Err != nil {
			t.Fatal(r.Err)
		}
		want = append(want, fmt.Sprintf("NOTIFY Caddy|New Messages|%s|%q|sticky=True|priority=0|icon=|id=%s|replaces=%s",
			m.Title, m.Body, id, id))
	}
	d.log.Expect(t, want...)
}

// No part of a message can begin a new header, and the text is cut to two lines.
func TestGrowlLines(t *testing.T) {
	d := &growlDesktop{}
	at := d.start(t, "").Addr()
	s := servicetest.NewSender(t)
	r := servicetest.Send(t, s, "growl://"+at, &notifier.Message{
		Title: "One\r\nNotification-Sticky: False", Body: "a\r\nNotification-Priority: 2\r\n\r\nd",
		Identity: &notifier.Identity{Name: "My\r\nCaddy"},
	}, 5*time.Second)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	d.log.Expect(t, "REGISTER My Caddy: New Messages True",
		`NOTIFY My Caddy|New Messages|One Notification-Sticky: False|"a\nNotification-Priority: 2"|sticky=True|priority=0|icon=`)
	if r := servicetest.Send(t, s, "growl://"+at, &notifier.Message{Body: "b", Identity: &notifier.Identity{}}, 5*time.Second); r.Err != nil {
		t.Fatal(r.Err)
	}
	d.log.Expect(t, "REGISTER Caddy: New Messages True", `NOTIFY Caddy|New Messages|Caddy|"b"|sticky=True|priority=0|icon=`)
}

// The application is registered again after the desktop has restarted.
func TestGrowlRegistersAgain(t *testing.T) {
	const notify = `NOTIFY Caddy|New Messages|Caddy|%q|sticky=True|priority=0|icon=`
	d := &growlDesktop{}
	server := d.start(t, "")
	at := server.Addr()
	s := servicetest.NewSender(t)
	servicetest.SendText(t, s, "growl://"+at, "one")
	servicetest.SendText(t, s, "growl://"+at, "two")
	d.log.Expect(t, "REGISTER Caddy: New Messages True", fmt.Sprintf(notify, "one"), fmt.Sprintf(notify, "two"))
	server.Stop()
	servicetest.SendFails(t, s, "growl://"+at, "refused")
	d = &growlDesktop{}
	d.start(t, at)
	servicetest.SendText(t, s, "growl://"+at, "three")
	d.log.Expect(t, "REGISTER Caddy: New Messages True", fmt.Sprintf(notify, "three"))
}

func TestGrowlFailures(t *testing.T) {
	t.Parallel()
	d := &growlDesktop{password: "correct"}
	at := d.start(t, "").Addr()
	s := servicetest.NewSender(t)
	servicetest.SendFails(t, s, "growl://wrong-one@"+at, "password", "wrong-one")
	servicetest.SendFails(t, s, "growl://"+at, "password")
	d.log.Expect(t)
	m := &notifier.Message{Body: "refuse this"}
	if r := servicetest.Send(t, s, "growl://correct@"+at, m, 5*time.Second); r.Err == nil ||
		!strings.HasPrefix(r.Err.Error(), "the desktop refused the message: 500 error error") ||
		len(r.Err.Error()) > 400 {
		t.Errorf("got %v", r.Err)
	}
	silent := servicetest.SilentServer(t)
	servicetest.Unanswered(t, s, "growl://"+silent, "timeout")
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	servicetest.SendFails(t, s, "growl://"+strings.TrimPrefix(web.URL, "http://"), "does not speak GNTP")
}

// The message is sent without the icon if that cannot be fetched.
func TestGrowlWithoutIcon(t *testing.T) {
	d := &growlDesktop{}
	at := d.start(t, "").Addr()
	m := servicetest.Message(t, "plain")
	m.Identity.Icon = "http://127.0.0.1:1/{type}"
	if r := servicetest.Send(t, servicetest.NewSender(t), "growl://"+at+"?version=1", m, 5*time.Second); r.Err != nil {
		t.Fatal(r.Err)
	}
	if got := d.log.Take(); len(got) != 2 || !strings.HasSuffix(got[1], "icon=") {
		t.Errorf("the desktop saw %q", got)
	}
}

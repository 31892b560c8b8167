package irc

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// testCA is the only CA that the tests of this package trust.
var testCA = servicetest.NewTrustedCA()

// network is a server with
//
//   - the user bob,
//   - the channel #ops with the key "k3y-of-ops",
//   - the channel ##open, which accepts messages from its members only,
//   - NickServ with the account "gateway", whose password is "secret-word",
//   - the server passwords "secret word" and "bob:secret-word".
type network struct {
	servicetest.Log
	*servicetest.Server
}

func newNetwork(t *testing.T, address string, config *tls.Config) *network {
	t.Helper()
	n := &network{}
	n.Server = servicetest.Serve(t, address, config, n.serve)
	return n
}

var randomNicks = regexp.MustCompile(`caddy[a-z0-9]{4}`)

// serve handles one connection and logs its lines, except pings.
func (n *network) serve(conn net.Conn) {
	say := func(format string, args ...any) { fmt.Fprintf(conn, format+"\r\n", args...) }
	nick, user, password, welcome := "", false, "", false
	joined := map[string]bool{}
	for r := bufio.NewReader(conn); ; {
		text, err := r.ReadString('\n')
		if err != nil {
			return
		}
		text = strings.TrimSuffix(text, "\r\n")
		command, rest, _ := strings.Cut(text, " ")
		to, last, _ := strings.Cut(rest, " :")
		if command != "PING" && command != "PONG" {
			n.Add(randomNicks.ReplaceAllString(text, "RANDOM"))
		}
		switch command {
		case "PASS":
			password = strings.TrimPrefix(rest, ":")
		case "NICK":
			if rest == "taken" {
				say(":irc.test 433 * %s :Nickname is already in use", rest)
				continue
			}
			nick = rest
		case "USER":
			user = true
		case "PONG":
			switch {
			case rest != ":are you there":
				n.Add("unexpected " + text)
			case welcome:
			case !slices.Contains([]string{"", "secret word", "bob:secret-word"}, password):
				say(":irc.test 464 * :Password incorrect")
				say("ERROR :Closing link")
				return
			default:
				welcome = true
				say(":irc.test 001 %s :Welcome", nick)
				say(":irc.test 422 %s :There is no message of the day", nick)
			}
			continue
		case "PING":
			say("@time=now :irc.test NOTICE %s :a distraction", nick)
			say("PING :are you there")
			say(":irc.test PONG irc.test %s", rest)
		case "JOIN":
			channel, key, _ := strings.Cut(rest, " ")
			if channel == "#ops" && key != "k3y-of-ops" {
				say(":irc.test 475 %s %s :Cannot join channel (+k)", nick, channel)
				continue
			}
			joined[channel] = true
			say(":%s!u@h JOIN %s", nick, channel)
		case "PRIVMSG":
			switch {
			case to == "NickServ":
				say(":NickServ!s@services NOTICE %s :This nickname is registered. Please identify.", nick)
				if last == "IDENTIFY secret-word" || last == "IDENTIFY gateway secret-word" {
					say(":NickServ!s@services NOTICE %s :You are now identified.", nick)
				} else {
					say(":NickServ!s@services NOTICE %s :Invalid password for %s.", nick, nick)
				}
			case to[0] == '#' && !joined[to]:
				say(":irc.test 404 %s %s :Cannot send to channel", nick, to)
			case to[0] != '#' && to != "bob":
				say(":irc.test 401 %s %s :No such nick/channel", nick, to)
			case last == "kick me":
				delete(joined, to)
				say(":op!o@h KICK %s %s :bye", to, nick)
			}
		case "QUIT":
			return
		}
		if nick != "" && user && !welcome {
			say("PING :are you there") // as many do before they let anybody in
		}
	}
}

// TestParameters checks that each parameter of the description changes what the
// server sees.
func TestParameters(t *testing.T) {
	const nick, user, join, message = "NICK RANDOM", "USER RANDOM 0 * :Caddy Notifications", "JOIN ##open", "PRIVMSG ##open :91% full"
	cases := []struct {
		user, rest string
		want       []string
	}{
		{"", "/##open", []string{nick, user, join, message}},
		{"", "/@bob", []string{nick, user, "PRIVMSG bob :91% full"}},
		{"", "?to=bob,%23%23open", []string{nick, user, "PRIVMSG bob :91% full", join, message}},
		{"", "/#ops:k3y-of-ops?join=no", []string{nick, user, "JOIN #ops k3y-of-ops", "PRIVMSG #ops :91% full"}},
		{"gateway@", "/##open", []string{"NICK gateway", "USER gateway 0 * :Caddy Notifications", join, message}},
		{
			"gateway@", "/##open?nick=alerts&name=Alerts%20of%20the%20house",
			[]string{"NICK alerts", "USER gateway 0 * :Alerts of the house", join, message},
		},
		{
			"gateway:secret%20word@", "/##open",
			[]string{"PASS :secret word", "NICK gateway", "USER gateway 0 * :Caddy Notifications", join, message},
		},
		{"gateway:secret%20word@", "/##open?mode=none", []string{"NICK gateway", "USER gateway 0 * :Caddy Notifications", join, message}},
		{
			"bob:secret-word@", "/##open?mode=znc",
			[]string{"PASS bob:secret-word", "NICK bob", "USER bob 0 * :Caddy Notifications", join, message},
		},
		{
			"gateway:secret-word@", "/##open?mode=nickserv",
			[]string{"NICK gateway", "USER gateway 0 * :Caddy Notifications", "PRIVMSG NickServ :IDENTIFY secret-word", join, message},
		},
		{
			"gateway:secret-word@", "/##open?mode=nickserv&nick=alerts",
			[]string{"NICK alerts", "USER gateway 0 * :Caddy Notifications", "PRIVMSG NickServ :IDENTIFY gateway secret-word", join, message},
		},
		{"taken@", "/##open", []string{"NICK taken", "USER taken 0 * :Caddy Notifications", nick, join, message}},
	}
	for _, c := range cases {
		t.Run(c.user+c.rest, func(t *testing.T) {
			n := newNetwork(t, "", nil)
			servicetest.SendText(t, servicetest.NewSender(t), "irc://"+c.user+n.Addr()+c.rest, "91% full")
			n.Expect(t, c.want...)
		})
	}
}

func TestLines(t *testing.T) {
	n := newNetwork(t, "", nil)
	s := servicetest.NewSender(t)
	m := &notifier.Message{Title: "Disk", Body: "one <b>&\n\n:two: \u00e9 \u6f22\r\nQUIT :three\rQUIT\x00 \x01DCC"}
	if r := servicetest.Send(t, s, "irc://"+n.Addr()+"/bob", m, 5*time.Second); r.Err != nil {
		t.Fatal(r.Err)
	}
	n.Expect(t, "NICK RANDOM", "USER RANDOM 0 * :Caddy Notifications", "PRIVMSG bob :Disk", "PRIVMSG bob :one <b>&",
		"PRIVMSG bob ::two: \u00e9 \u6f22", "PRIVMSG bob :QUIT :three", "PRIVMSG bob :QUIT DCC")

	long := strings.Repeat("word ", 100) + strings.Repeat("\u6f22", 200)
	servicetest.SendText(t, s, "irc://"+n.Addr()+"/bob", long)
	var text []string
	for _, line := range n.Take() {
		if len(line) > 400 {
			t.Errorf("a line has %d bytes", len(line))
		}
		text = append(text, strings.TrimPrefix(line, "PRIVMSG bob :"))
	}
	if got := strings.Join(text, ""); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(long, " ", "") {
		t.Errorf("the lines are not the text: %q", text)
	}
}

func TestKeepsConnection(t *testing.T) {
	n := newNetwork(t, "", nil)
	s, url := servicetest.NewSender(t), "irc://"+n.Addr()+"/##open"
	servicetest.SendText(t, s, url, "one")
	n.Take()
	servicetest.SendText(t, s, url, "two")
	n.Expect(t, "PRIVMSG ##open :two")
	n.Stop()
	again := newNetwork(t, n.Addr(), nil)
	servicetest.SendText(t, s, url, "three")
	again.Expect(t, "NICK RANDOM", "USER RANDOM 0 * :Caddy Notifications", "JOIN ##open", "PRIVMSG ##open :three")
	servicetest.SendText(t, s, url, "kick me")
	servicetest.SendText(t, s, url, "back again")
	again.Expect(t, "PRIVMSG ##open :kick me", "JOIN ##open", "PRIVMSG ##open :back again")
	s.Close()
	var lines []string
	servicetest.Eventually(t, "the connection is not closed", func() bool { lines = again.Take(); return lines != nil })
	if lines[0] != "QUIT :Caddy Notifications" {
		t.Errorf("got %q at the end", lines)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, "", nil)
	s := servicetest.NewSender(t)
	servicetest.SendFails(t, s, "irc://bob:wrong-password@"+n.Addr()+"/bob",
		"the IRC server refused the sign-in: Password incorrect (464)", "wrong-password")
	servicetest.SendFails(t, s, "irc://bob:wrong-password@"+n.Addr()+"/bob?mode=nickserv",
		"NickServ refused the sign-in: Invalid password", "wrong-password")
	servicetest.SendFails(t, s, "irc://"+n.Addr()+"/alice", "the IRC server refused the message: No such nick/channel (401)")
	servicetest.SendFails(t, s, "irc://"+n.Addr()+"/##open?join=no", "the IRC server refused the message: Cannot send to channel (404)")
	servicetest.SendFails(t, s, "irc://"+n.Addr()+"/#ops:wrong-k3y",
		"the IRC server refused to let us into the channel: Cannot join channel (+k) (475)", "wrong-k3y")
	n.Take()
	servicetest.SendFails(t, s, "irc://"+n.Addr()+"/##open/alice/bob", "target 2 of 3: the IRC server refused the message")
	if got := n.Take(); got[len(got)-1] != "PRIVMSG bob :x" {
		t.Errorf("the others should have the message: %q", got)
	}
	silent := servicetest.SilentServer(t)
	servicetest.Unanswered(t, s, "irc://"+silent+"/bob", "not done within")
	servicetest.Unanswered(t, s, "ircs://"+silent+"/bob", "not done within")
}

func TestTLS(t *testing.T) {
	n := newNetwork(t, "", servicetest.SelfSigned(t))
	servicetest.SendFails(t, servicetest.NewSender(t), "ircs://"+n.Addr()+"/bob", "certificate")
	n.Expect(t)
	servicetest.SendText(t, servicetest.NewSender(t), "ircs://"+n.Addr()+"/bob?verify=no", "one")
	n.Expect(t, "NICK RANDOM", "USER RANDOM 0 * :Caddy Notifications", "PRIVMSG bob :one")

	config := testCA.Certificate(t, "127.0.0.1")
	n = newNetwork(t, "", config)
	servicetest.SendText(t, servicetest.NewSender(t), "ircs://"+n.Addr()+"/bob", "two")
	n.Expect(t, "NICK RANDOM", "USER RANDOM 0 * :Caddy Notifications", "PRIVMSG bob :two")
}

// Known networks use TLS and NickServ by default.
func TestNetworks(t *testing.T) {
	for _, c := range []struct {
		in   *service
		want string
	}{
		{&service{Server: notifier.Server{Host: "irc.libera.chat"}}, "true 6697 nickserv"},
		{&service{Server: notifier.Server{Host: "irc.SynIRC.net"}, mode: "none"}, "true 6697 none"},
		{&service{Server: notifier.Server{Host: "irc.libera.chat", Port: 6667}}, "false 6667 server"},
		{&service{Server: notifier.Server{Host: "notlibera.chat"}}, "false 6667 server"},
		{&service{Server: notifier.Server{Host: "irc.example.com", Secure: true}}, "true 6697 server"},
	} {
		c.in.targets = []string{"@bob"}
		if err := c.in.Finish(nil); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%t %d %s", c.in.Secure, c.in.Port, c.in.signIn); got != c.want {
			t.Errorf("%s: got %s, want %s", c.in.Host, got, c.want)
		}
	}
}

package integration

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// ngircd starts a server with the password "secret-word" and the channel #ops
// with the key "k3y-of-ops". penalty is the maximum delay in seconds for a
// client that sends much; -1 means no maximum.
func ngircd(t *testing.T, s *signer, penalty int) (clear, secure int, restart func()) {
	t.Helper()
	daemon := program(t, "ngircd", "ngircd")
	cert, key := s.certificate(t)
	clear, secure = freePort(t), freePort(t)
	file := writeFile(t, "ngircd.conf", fmt.Sprintf(`[Global]
Name = irc.test
Info = Test
Listen = 127.0.0.1
Ports = %d
Password = secret-word
MotdPhrase = Hello
ServerUID = root
ServerGID = root
[Limits]
MaxConnectionsIP = 0
MaxPenaltyTime = %d
[Options]
DNS = no
Ident = no
PAM = no
[SSL]
CertFile = %s
KeyFile = %s
Ports = %d
[Channel]
Name = #ops
Modes = +ntk k3y-of-ops
`, clear, penalty, cert, key, secure))
	p := start(t, clear, daemon, "-n", "-f", file)
	return clear, secure, func() {
		p.stop()
		p = start(t, clear, daemon, "-n", "-f", file)
	}
}

// listener is the user bob, in the channels #ops and #open.
type listener struct{ lines chan string }

func listen(t *testing.T, port int) *listener {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	l := &listener{make(chan string, 100)}
	ready := make(chan struct{})
	go func() {
		r := bufio.NewReader(conn)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			line = strings.TrimRight(line, "\r\n")
			words := strings.SplitN(line, " ", 4)
			switch {
			case words[0] == "PING":
				fmt.Fprintf(conn, "PONG %s\r\n", words[1])
			case len(words) > 3 && words[1] == "366" && strings.HasPrefix(words[3], "#open"):
				close(ready)
			case len(words) > 3 && words[1] == "PRIVMSG":
				l.lines <- words[2] + " " + strings.TrimPrefix(words[3], ":")
			}
		}
	}()
	fmt.Fprint(conn, "PASS secret-word\r\nNICK bob\r\nUSER bob 0 * :Bob\r\nJOIN #ops k3y-of-ops\r\nJOIN #open\r\n")
	select {
	case <-ready:
	case <-time.After(10 * time.Second):
		t.Fatal("bob cannot join the channels")
	}
	return l
}

// expect expects these lines next.
func (l *listener) expect(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for len(got) < len(want) {
		select {
		case line := <-l.lines:
			got = append(got, line)
		case <-time.After(10 * time.Second):
			t.Fatalf("bob received %q, want %q", got, want)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("bob received %q, want %q", got, want)
	}
}

func TestNgircd(t *testing.T) {
	clear, secure, restart := ngircd(t, authority, 0)
	bob := listen(t, clear)
	const account = "gateway:secret-word@127.0.0.1"
	url := fmt.Sprintf("irc://%s:%d", account, clear)

	var lines, private []string
	for line := range strings.SplitSeq(body, "\n") {
		lines, private = append(lines, "#open "+line), append(private, "bob "+line)
	}
	delivers(t, newSender(t), url+"/#open", body)
	bob.expect(t, lines...)
	delivers(t, newSender(t), url+"/@bob?nick=another", body)
	bob.expect(t, private...)
	delivers(t, newSender(t), url+"/#ops:k3y-of-ops?nick=bob", "with a key, and a name that is taken")
	bob.expect(t, "#ops with a key, and a name that is taken")

	delivers(t, newSender(t), fmt.Sprintf("ircs://%s:%d/bob?nick=secure", account, secure), "over TLS")
	bob.expect(t, "bob over TLS")
	slow, bad, _ := ngircd(t, newSigner(), -1)
	fails(t, newSender(t), fmt.Sprintf("ircs://%s:%d/bob", account, bad), "certificate", "secret-word")

	denies(t, newSender(t), fmt.Sprintf("irc://gateway:wrong-password@127.0.0.1:%d/bob", clear), "the IRC server", "wrong-password")
	fails(t, newSender(t), url+"/nobody?nick=n1", "the IRC server refused the message: No such nick or channel name (401)", "secret-word")
	denies(t, newSender(t), url+"/#ops:wrong-k3y?nick=n2", "the IRC server refused to let us into the channel", "wrong-k3y")
	fails(t, newSender(t), url+"/#ops?join=no&nick=n3", "(404)", "secret-word")

	s := newSender(t)
	delivers(t, s, url+"/#open", "before")
	bob.expect(t, "#open before")
	restart()
	bob = listen(t, clear)
	delivers(t, s, url+"/#open", "after")
	bob.expect(t, "#open after")

	// Enough lines for the server's flood protection, and one that is too long.
	strict := listen(t, slow)
	url = fmt.Sprintf("irc://%s:%d", account, slow)
	var flood []string
	for i := range 30 {
		flood = append(flood, fmt.Sprintf("#open line %d", i))
	}
	delivers(t, newSender(t), url+"/#open?nick=flood", strings.ReplaceAll(strings.Join(flood, "\n"), "#open ", ""))
	strict.expect(t, flood...)
	long := strings.TrimSpace(strings.Repeat("漢字 words ", 60))
	delivers(t, newSender(t), url+"/bob?nick=long", long)
	got := ""
	for len(got) < len(long) {
		select {
		case line := <-strict.lines:
			got += strings.TrimPrefix(line, "bob ") + " "
		case <-time.After(10 * time.Second):
			t.Fatalf("of a long line, bob received %q", got)
		}
	}
	if strings.TrimSpace(got) != long {
		t.Errorf("of a long line, bob received %q", got)
	}
}

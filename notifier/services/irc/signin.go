package irc

import (
	"cmp"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// register signs in with a nickname, or with a random one if it is taken (RFC
// 2812, section 3.1).
func (i *service) register(conn *connection, id *notifier.Identity) error {
	nick := cmp.Or(i.nick, strings.ReplaceAll(i.User, " ", "_"), randomNick(id.Name))
	user := cmp.Or(wordPattern.FindString(i.User), wordPattern.FindString(nick), "caddy")
	var lines []string
	switch {
	case i.signIn == modeZNC:
		lines = append(lines, "PASS "+trailing(i.User+":"+i.Password))
	case i.signIn == modeServer && i.Password != "":
		lines = append(lines, "PASS "+trailing(i.Password))
	}
	lines = append(lines, "NICK "+nick, "USER "+user+" 0 * :"+cmp.Or(i.name, oneLine(id.Description), nick))
	if err := conn.write(lines...); err != nil {
		return err
	}
	for names := 1; ; {
		line, err := conn.read()
		if err != nil {
			return denied(err)
		}
		switch {
		case line.command == "001" && len(line.params) > 0:
			conn.nick = line.params[0]
			return nil
		case nickTaken[line.command] && names < 4:
			names++
			err = conn.write("NICK " + randomNick(id.Name))
		case line.command == passwordMismatch:
			return notifier.Denied(errors.New("the IRC server refused the sign-in: " + line.reason()))
		case line.isError() && line.command != "439": // many servers send it for "please wait"
			err = errors.New("the IRC server refused the sign-in: " + line.reason())
		}
		if err != nil {
			return err
		}
	}
}

// passwordMismatch is the reply to a wrong password (RFC 2812, section 5.2).
const passwordMismatch = "464"

// wrongPassword matches the reason with which a server closes the connection because
// of the password. Some send no other reply.
var wrongPassword = lazyregexp.New(`(?i)\b(bad|wrong|invalid|incorrect|non-matching|` +
	`mismatched)\b.*\bpassword|\bpassword\b.*\b(incorrect|mismatch|invalid|wrong)`)

// denied returns an error of the sign-in, marked if the server closed the connection
// because of the password.
func denied(err error) error {
	if closed, ok := errors.AsType[*closedError](err); ok && wrongPassword.MatchString(closed.reason) {
		return notifier.Denied(err)
	}
	return err
}

var (
	nickTaken   = map[string]bool{"432": true, "433": true, "436": true, "437": true}
	wordPattern = lazyregexp.New(`^[A-Za-z0-9._-]+`)
	notLetters  = lazyregexp.New(`[^a-z]`)
)

// randomNick returns a nickname that begins like name and ends with random
// letters. It has at most nine characters, which every server accepts (RFC
// 2812, section 1.2.1).
func randomNick(name string) string {
	name = cmp.Or(notLetters.ReplaceAllString(strings.ToLower(name), ""), "caddy")
	return name[:min(len(name), 5)] + strings.ToLower(rand.Text()[:4])
}

// trailing returns s as the last parameter of a line, which may contain spaces.
func trailing(s string) string {
	if s == "" || s[0] == ':' || strings.Contains(s, " ") {
		return ":" + s
	}
	return s
}

// oneLine replaces line breaks by spaces.
func oneLine(s string) string {
	return strings.NewReplacer("\r", " ", "\n", " ", "\x00", "").Replace(s)
}

// nickServTimeout is the time to wait for NickServ. After that the sign-in
// counts as accepted, because some networks answer with an unknown text.
const nickServTimeout = 5 * time.Second

// Notices of NickServ after a sign-in.
var (
	nickServYes = lazyregexp.New(`(?i)\b(you are now|now (identified|logged in|` +
		`recognized)|(password|login) accepted|already (identified|logged in))`)
	nickServNo = lazyregexp.New(`(?i)\b(invalid|incorrect|wrong|fail(ed|ure)|denied|(isn't|is not|not a) registered|no such)\b`)
)

// identify signs in to the account at NickServ if the URL has a password for
// it.
func (i *service) identify(conn *connection) error {
	if i.signIn != modeNickServ || i.Password == "" {
		return nil
	}
	account := ""
	if i.User != "" && !strings.EqualFold(i.User, conn.nick) && !strings.Contains(i.User, " ") {
		account = i.User + " "
	}
	if err := conn.write("PRIVMSG NickServ :IDENTIFY " + account + i.Password); err != nil {
		return err
	}
	quiet := time.AfterFunc(nickServTimeout, func() { _ = conn.write("PING :nickserv") })
	defer quiet.Stop()
	for {
		line, err := conn.read()
		if err != nil {
			return err
		}
		from, _, _ := strings.Cut(line.source, "!")
		notice := line.command == "NOTICE" && strings.EqualFold(from, "NickServ")
		switch {
		case line.command == "900", line.command == "PONG", notice && nickServYes.MatchString(line.last()):
			return nil
		case notice && nickServNo.MatchString(line.last()):
			return notifier.Denied(errors.New("NickServ refused the sign-in: " + line.reason()))
		case line.isError(): // NickServ may be away, too
			return errors.New("NickServ refused the sign-in: " + line.reason())
		}
	}
}

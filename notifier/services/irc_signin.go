package services

import (
	"cmp"
	"crypto/rand"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// register tells the server who we are, under another name where ours is
// taken (RFC 2812, section 3.1).
func (i *irc) register(conn *ircConn, id *notifier.Identity) error {
	nick := cmp.Or(i.nick, strings.ReplaceAll(i.User, " ", "_"), ircNick(id.Name))
	user := cmp.Or(ircWord.FindString(i.User), ircWord.FindString(nick), "caddy")
	var lines []string
	switch {
	case i.signIn == ircZNC:
		lines = append(lines, "PASS "+ircLast(i.User+":"+i.Password))
	case i.signIn == ircServer && i.Password != "":
		lines = append(lines, "PASS "+ircLast(i.Password))
	}
	lines = append(lines, "NICK "+nick, "USER "+user+" 0 * :"+cmp.Or(i.name, ircText(id.Description), nick))
	if err := conn.write(lines...); err != nil {
		return err
	}
	for names := 1; ; {
		line, err := conn.read()
		if err != nil {
			return err
		}
		switch {
		case line.command == "001" && len(line.params) > 0:
			conn.nick = line.params[0]
			return nil
		case ircNickTaken[line.command] && names < 4:
			names++
			err = conn.write("NICK " + ircNick(id.Name))
		case line.refuses() && line.command != "439": // which many take for "please wait"
			err = errors.New("the IRC server refused the sign-in: " + line.reason())
		}
		if err != nil {
			return err
		}
	}
}

var (
	ircNickTaken = map[string]bool{"432": true, "433": true, "436": true, "437": true}
	ircWord      = regexp.MustCompile(`^[A-Za-z0-9._-]+`)
	ircNotWord   = regexp.MustCompile(`[^a-z]`)
)

// ircNick makes up a nickname of at most the nine characters that every
// server takes (RFC 2812, section 1.2.1).
func ircNick(name string) string {
	name = cmp.Or(ircNotWord.ReplaceAllString(strings.ToLower(name), ""), "caddy")
	return name[:min(len(name), 5)] + strings.ToLower(rand.Text()[:4])
}

// ircLast is a parameter at the end of a line, which may hold spaces.
func ircLast(s string) string {
	if s == "" || s[0] == ':' || strings.Contains(s, " ") {
		return ":" + s
	}
	return s
}

// ircText is a text without line breaks.
func ircText(s string) string {
	return strings.NewReplacer("\r", " ", "\n", " ", "\x00", "").Replace(s)
}

// nickServTime is how long NickServ may think. It may say nothing that we
// understand, so that this is no failure.
const nickServTime = 5 * time.Second

var (
	nickServYes = regexp.MustCompile(`(?i)\b(you are now|now (identified|logged in|recognized)|(password|login) accepted|already (identified|logged in))`)
	nickServNo  = regexp.MustCompile(`(?i)\b(invalid|incorrect|wrong|fail(ed|ure)|denied|(isn't|is not|not a) registered|no such)\b`)
)

// identify signs in at NickServ.
func (i *irc) identify(conn *ircConn) error {
	if i.signIn != ircNickServ || i.Password == "" {
		return nil
	}
	account := ""
	if i.User != "" && !strings.EqualFold(i.User, conn.nick) && !strings.Contains(i.User, " ") {
		account = i.User + " "
	}
	if err := conn.write("PRIVMSG NickServ :IDENTIFY " + account + i.Password); err != nil {
		return err
	}
	quiet := time.AfterFunc(nickServTime, func() { _ = conn.write("PING :nickserv") })
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
		case line.refuses(), notice && nickServNo.MatchString(line.last()):
			return errors.New("NickServ refused the sign-in: " + line.reason())
		}
	}
}

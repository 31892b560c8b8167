package command

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/certmagic"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/folder"
)

// Names in the Caddyfile of init, as in the examples of the documentation.
const (
	initKey  = "ops"
	initUser = "monitoring"
	initPort = ":8080"
)

// Who uses the console, and the files of the folder with secrets besides [folder.Password].
const (
	initAdmin   = "admin"
	initConsole = "console-password"
	initReader  = "reader" // of the key, for ntfy's app
)

// What init writes for every key: how long its messages can be read, and a rule. With a rule, an incident
// is open until it is over. This one lets pass what a person would try.
const (
	initInbox = "inbox 7d"
	initRule  = "rate 30/1m"
)

// firstConfig is a first configuration.
type firstConfig struct {
	site     string // "" if only programs on this machine may send
	port     string // for these, with a colon; "" for initPort
	password string // of the site
	admin    string // the password of the console
	reader   string // of the key's inbox; "" without app
	url      string // where messages go; "" with device or app
	service  string // its name
	device   bool   // messages go to phones and browsers
	app      bool   // ntfy's app reads the messages
	keep     bool
}

// makeSecrets makes the passwords.
func (c *firstConfig) makeSecrets() {
	c.admin = rand.Text()
	if c.site != "" {
		c.password = rand.Text()
	}
	if c.app {
		c.reader = rand.Text()
	}
}

// public returns the address of the site if it has HTTPS with a certificate that phones trust, or "".
func (c *firstConfig) public() string {
	address := c.address()
	host, _, _ := strings.Cut(strings.TrimPrefix(address, "https://"), ":")
	if _, err := netip.ParseAddr(host); err == nil || c.site == "" || !strings.HasPrefix(address, "https://") ||
		!strings.Contains(host, ".") || !certmagic.SubjectQualifiesForPublicCert(host) {
		return ""
	}
	return address
}

// setApp makes ntfy's app the reader of the messages. A phone does not reach a site of this machine alone.
func (c *firstConfig) setApp() {
	c.app = true
	if c.site == "" {
		c.site, c.port = cmp.Or(c.port, initPort), ""
	}
}

// setSite sets the site to an answer: local, or the address of a site.
func (c *firstConfig) setSite(text string) error {
	local, port, hasPort := strings.Cut(text, ":")
	switch n, err := strconv.ParseUint(port, 10, 16); {
	case local != localSite:
	case !hasPort:
		return nil
	case err != nil || n == 0:
		return errors.New("this is no port; write for example local:8081")
	default:
		c.port = ":" + port
		return nil
	}
	bad := errors.New("this is no address of a site; write local, local:8081 for another port, " +
		"a domain name such as alerts.example.com, or a port such as :8080")
	if strings.ContainsAny(text, " \t\r\n{}\"`#,*") || text == "" ||
		strings.Contains(strings.TrimPrefix(strings.TrimPrefix(text, "https://"), "http://"), "/") {
		return bad
	}
	if _, err := netip.ParseAddr(text); err != nil {
		if a, err := httpcaddyfile.ParseAddress(text); err != nil || a.Host == "" && a.Port == "" ||
			!strings.ContainsAny(text, ".:") && a.Host != "localhost" {
			return bad
		}
	}
	c.site = text
	return nil
}

// address returns the address of the site for a program on this machine, or for all if
// it has a name.
func (c *firstConfig) address() string {
	switch {
	case c.site == "":
		return "http://127.0.0.1" + cmp.Or(c.port, initPort)
	case strings.HasPrefix(c.site, ":"):
		return "http://localhost" + c.site
	case strings.Contains(c.site, "://"):
		return strings.Replace(c.site, "://:", "://localhost:", 1)
	case strings.HasSuffix(c.site, ":80"):
		return "http://" + strings.TrimSuffix(c.site, ":80")
	}
	return "https://" + c.site
}

// files returns the files of the configuration in a folder: those with secrets, and
// then the Caddyfile.
func (c *firstConfig) files(out string) (files []folder.File, err error) {
	secret := func(name, text string) string {
		path := filepath.Join(out, folder.Secrets, name)
		files = append(files, folder.File{Path: path, Text: text + "\n"})
		return path
	}
	w := new(folder.CaddyfileWriter)
	w.Comment(`Written by "caddy notify init". Start it with

	caddy run --config ` + filepath.Join(out, folder.Caddyfile) + `

After a change: caddy reload --config with the same file. A mistake is refused, with
its line.`)
	c.writeOptions(w, secret)
	if err := c.writeSite(w, secret); err != nil {
		return nil, err
	}
	return append(files, folder.File{Path: filepath.Join(out, folder.Caddyfile), Text: w.String()}), nil
}

// writeOptions writes the global options: the key and the events. secret returns the path of
// a file with a secret.
func (c *firstConfig) writeOptions(w *folder.CaddyfileWriter, secret func(name, text string) string) {
	w.Open("")
	w.Open("notify")
	if c.keep {
		w.Comment("Keeps messages that cannot be delivered at once, and tries again, also after a\ncrash or a restart.")
		w.Line("queue")
		w.Line("")
		w.Comment("The console shows the titles of messages, as long as their results.")
		w.Line("titles on")
	} else {
		w.Comment("Remove the # to keep messages that cannot be delivered at once, and to try again,\nalso after a crash or a restart. " +
			"The lines below that need it begin with # as well.\nqueue\ntitles on")
	}
	w.Line("")
	c.writePush(w)
	w.Line("")
	w.Comment("Every site below may use this key. Its address ends with its name.")
	w.Open("key " + initKey)
	if c.url != "" {
		w.Comment("The notification URL (" + c.service + ") is in a separate file, because it is a secret.")
		w.Line("url {file." + secret(initKey, c.url) + "}")
		w.Line("")
	}
	w.Comment("More destinations: with the tag phone, \"tag=phone\" in a message chooses it.\nurl ntfys://ntfy.sh/my-alerts phone")
	w.Line("")
	w.Comment("Its messages can be read for a week. With a rule, a failure about an incident is open\nuntil it is over. " +
		"This one lets 30 messages a minute through, and makes one of the rest.")
	c.writeKept(w, initInbox)
	if c.app {
		w.Comment("The password with which ntfy's app reads them.")
		w.Line("reader {file." + secret(initReader, c.reader) + "}")
	}
	c.writeKept(w, initRule)
	w.Close()
	w.Close()
	w.Line("")
	w.Comment("A certificate that cannot be renewed becomes a message, too.")
	w.Open("events")
	w.Line("on cert_failed notify " + initKey)
	w.Close()
	w.Close()
	w.Line("")
}

// writeKept writes a line that needs the queue, which is a comment without one.
func (c *firstConfig) writeKept(w *folder.CaddyfileWriter, line string) {
	if !c.keep {
		line = "# " + line
	}
	w.Line(line)
}

// writePush writes the lines with which phones and browsers are destinations.
func (c *firstConfig) writePush(w *folder.CaddyfileWriter) {
	switch {
	case c.public() == "":
		w.Comment("Phones and browsers can get messages without an app, over HTTPS that they trust. Give\n" +
			"the site below a domain name, or the name of this machine in Tailscale or the like,\nand remove the # here:\n" +
			"push\npublic_url https://alerts.example.com")
	case c.keep:
		w.Comment("Phones and browsers can be invited to a key, and are a destination of it. The links\nin messages begin with public_url.")
		w.Line("push")
		w.Line("public_url " + c.public())
	default:
		w.Comment("The links in messages begin with this. With push, phones and browsers can be invited\nto a key, and are a destination of it.")
		w.Line("# push")
		w.Line("public_url " + c.public())
	}
}

// writeSite writes the site. secret is as for writeOptions.
func (c *firstConfig) writeSite(w *folder.CaddyfileWriter, secret func(name, text string) string) error {
	hash, err := folder.HashPassword(c.admin)
	if err != nil {
		return err
	}
	admin := initAdmin + " " + hash
	about := "The password of " + initAdmin + " is in " + secret(initConsole, c.admin) +
		".\ncaddy hash-password makes the hash of another one."
	if c.site == "" {
		w.Comment("Programs on this machine may send, without a password. Before you remove bind, put\nbasic_auth in front of notify.")
		w.Open("http://" + cmp.Or(c.port, initPort))
		w.Line("bind 127.0.0.1")
		w.Comment("The console is for people. " + about)
		w.Line("@console path /notify/console*")
		w.Open("basic_auth @console")
	} else {
		if hash, err = folder.HashPassword(c.password); err != nil {
			return err
		}
		w.Comment("Who has a password may send. Without a domain name, it is not encrypted on its way.")
		w.Open(c.site)
		c.writeLogin(w)
		w.Comment("Programs are " + initUser + ", with the password in " + secret(folder.Password, c.password) + ".\n" + about)
		w.Open(strings.TrimSpace("basic_auth " + c.login()))
		w.Line(initUser + " " + hash)
	}
	w.Line(admin)
	w.Close()
	w.Line("")
	w.Open("notify")
	w.Comment("Clients cannot bring notification URLs of their own.")
	w.Line("stateless off")
	w.Line("")
	w.Comment("Pages at /notify/console, to which / leads: what arrived, what waits, and why.")
	w.Open("console")
	w.Line("home on")
	w.Close()
	w.Line("")
	w.Comment("Keys that " + initAdmin + " makes there. Each has the same inbox and rule.")
	w.Open("configs")
	w.Line("manage " + initAdmin)
	c.writeKept(w, initInbox)
	c.writeKept(w, initRule)
	w.Close()
	w.Line("")
	c.writeEgress(w)
	w.Close()
	w.Line("")
	w.Comment("Without this, a message to a mistyped address would look sent.")
	w.Line("respond 404")
	w.Close()
	return nil
}

// writeEgress writes the line for addresses of the network. A site of the Internet has it as a comment,
// because files that messages name are fetched from there, too.
func (c *firstConfig) writeEgress(w *folder.CaddyfileWriter) {
	const allow = "allow private_ranges"
	if c.public() == "" {
		w.Comment("Destinations that " + initAdmin +
			" adds, and files that messages name, may be at addresses of your\nnetwork, such as 192.168.1.20.")
		w.Open("egress")
		w.Line(allow)
		w.Close()
		return
	}
	w.Comment("Remove the # if destinations that " + initAdmin + " adds are at addresses of your network, such as\n" +
		"192.168.1.20. Then files that messages name may be there, too.\negress {\n\t" + allow + "\n}")
}

// login returns the matcher of what needs a password, or "" for everything.
func (c *firstConfig) login() string {
	if c.app || c.keep && c.public() != "" {
		return "@login"
	}
	return ""
}

// writeLogin writes the matcher that login returns. What it leaves out needs an invitation, the secret of
// a device, the random bits of a link, or the reader of an inbox.
func (c *firstConfig) writeLogin(w *folder.CaddyfileWriter) {
	if c.login() == "" {
		return
	}
	w.Comment("What phones and readers open without a password, each with a secret of its own.")
	w.Open("@login")
	if c.keep && c.public() != "" {
		w.Line("not path /notify/*/devices /notify/*/devices/* /notify/*/devices/*/* /notify/push.js /notify/app.webmanifest " +
			"/notify/icon.svg /notify/icon-192.png /notify/icon-512.png /notify/badge.png /notify/incidents/* /notify/asks/*")
		w.Open("not")
		w.Line("method GET HEAD")
		w.Line(`path_regexp ^/notify/[\w-]+$`)
		w.Line("query invite=*")
		w.Line("not path /notify/asks /notify/console /notify/incidents /notify/status")
		w.Close()
	}
	if c.app {
		w.Open("not")
		w.Line("method GET HEAD")
		w.Line("path /notify/*/messages /notify/*/stream /notify/*/ntfy/*/json /notify/*/ntfy/*/sse /notify/*/ntfy/*/raw " +
			"/notify/*/ntfy/*/ws /notify/*/ntfy/*/auth")
		w.Line("not path /notify/console/*")
		w.Close()
	}
	w.Close()
}

// report lists the written files and the next steps.
func (c *firstConfig) report(w io.Writer, out string) error {
	secrets := filepath.Join(out, folder.Secrets)
	caddyfile, user, phone := filepath.Join(out, folder.Caddyfile), "", ""
	if c.site != "" {
		user = fmt.Sprintf("-u %s:\"$(cat %s)\" ", initUser, filepath.Join(secrets, folder.Password))
	}
	switch {
	case c.device:
		phone = "\nInvite your phone or browser: scan the code, or open the link:\n\n  caddy notify invite " + initKey + "\n"
	case c.app:
		phone = fmt.Sprintf(`
In ntfy's app, add a subscription, and use another server. Instead of localhost, write
the address of this machine in your network:

  Service URL  %s/notify/%s/ntfy
  Topic        any, such as phone
  User name    any, such as phone
  Password     the text in %s
`, c.address(), initKey, filepath.Join(secrets, initReader))
	}
	_, err := fmt.Fprintf(w, `Written: %s, and its secrets in %s

Start the gateway:

  caddy run --config %s
%s
Send a message, in another terminal:

  curl %s-d "title=Disk" -d "body=91%% full" %s/notify/%s

Open the console, as the user %s with the password in %s:

  %s/notify/console
`, caddyfile, secrets, caddyfile, phone, user, c.address(), initKey, initAdmin, filepath.Join(secrets, initConsole), c.address())
	if err == nil && c.portInUse() {
		_, err = fmt.Fprintf(w, "\nAnother program listens on the port of %s. Stop it, or write another port into the Caddyfile.\n", c.address())
	}
	return err
}

// portInUse reports whether another program listens on the port of the site, if that is one
// of this machine.
func (c *firstConfig) portInUse() bool {
	port := c.site
	if c.site == "" {
		port = cmp.Or(c.port, initPort)
	}
	if !strings.HasPrefix(port, ":") {
		return false
	}
	l, err := net.Listen("tcp", "127.0.0.1"+port)
	if err == nil {
		_ = l.Close()
	}
	return errors.Is(err, syscall.EADDRINUSE)
}

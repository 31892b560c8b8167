package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/mailbox"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// isTerminal reports whether a person answers.
func isTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// asker asks questions.
type asker struct {
	lines    *bufio.Scanner // nil if nobody answers
	terminal *os.File       // where they are typed in; nil for none
	out      io.Writer
}

// maxLine is the length of the longest line that is read. URLs with a whole file in
// them are this long.
const maxLine = 64 << 10

// read makes a reader the place of the answers.
func (a *asker) read(in io.Reader) {
	a.lines = bufio.NewScanner(in)
	a.lines.Buffer(nil, maxLine)
	if isTerminal(in) {
		a.terminal, _ = in.(*os.File)
	}
}

// canAsk reports whether somebody answers.
func (a *asker) canAsk() bool { return a.lines != nil }

var errNoAnswer = errors.New("there is no answer, so nothing was written")

// ask asks a question and returns the answer without white space around it.
func (a *asker) ask(question string) (string, error) {
	fmt.Fprint(a.out, question, "\n> ")
	if !a.lines.Scan() {
		if err := a.lines.Err(); err != nil {
			return "", fmt.Errorf("reading the answer: %w", err)
		}
		return "", errNoAnswer
	}
	return strings.TrimSpace(a.lines.Text()), nil
}

// askSecret is ask for a password, which a terminal does not show.
func (a *asker) askSecret(question string) (string, error) {
	if a.terminal == nil {
		return a.ask(question)
	}
	fmt.Fprint(a.out, question, " It is not shown.\n> ")
	defer fmt.Fprintln(a.out)
	fd := int(a.terminal.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	defer signal.Stop(interrupted)
	type answer struct {
		text []byte
		err  error
	}
	answered := make(chan answer, 1)
	go func() { // ends with an answer, or with the program
		text, err := term.ReadPassword(fd)
		answered <- answer{text, err}
	}()
	select {
	case x := <-answered:
		if x.err != nil {
			return "", fmt.Errorf("reading the answer: %w", x.err)
		}
		return strings.TrimSpace(string(x.text)), nil
	case <-interrupted: // otherwise the shell shows nothing that is typed
		_ = term.Restore(fd, state)
		return "", errNoAnswer
	}
}

// explain tells why an answer cannot be used.
func (a *asker) explain(problem string) { fmt.Fprintf(a.out, "%s\n\n", markup.Printable(problem)) }

// askSite asks who may send.
func (a *asker) askSite() (string, error) {
	for {
		text, err := a.ask(`1. Who may send messages?
   Enter: programs on this machine, at http://127.0.0.1` + initPort + `, without a password.
   local:8081: the same at another port.
   A domain name such as alerts.example.com, or a port such as ` + initPort + `: everybody who has
   the password, which is made now.`)
		if err != nil {
			return "", err
		}
		if text == "" {
			return localSite, nil
		}
		if err := new(firstConfig).setSite(text); err != nil {
			a.explain(err.Error())
			continue
		}
		return text, nil
	}
}

// askURL asks where messages go, and sets the notification URL and the name of its service,
// or that messages go to a device. text is an answer that was given before; "" for none.
func (a *asker) askURL(first *firstConfig, text string) error {
	for ; ; text = "" {
		c, err := a.askChoice(text)
		switch {
		case err != nil:
			return err
		case c == nil:
			continue
		case c.app:
			first.setApp()
			return nil
		case c.device:
			if err = a.askPublic(first); err != nil || first.device || first.app {
				return err
			}
			continue
		}
		if first.url, err = a.complete(c); err != nil || first.url != "" {
			first.service = c.Service.Name
			return err
		}
	}
}

// askChoice asks where messages go, unless text says so. It returns nil if the answer leads
// nowhere.
func (a *asker) askChoice(text string) (_ *choice, err error) {
	if text == "" {
		if text, err = a.ask(`2. Where do messages go?
   Paste what a service gave you: the address of a webhook, a token, an e-mail address,
   a notification URL. Or choose: type what you use, such as telegram, ntfy, gmail or
   teams, or what it is for, such as chat, phone, mail or sms. A phone needs an app, or
   HTTPS that it trusts: phone shows the ways.`); err != nil || text == "" {
			return nil, err
		}
	}
	return a.choose(text)
}

// threeWays says how a phone gets messages.
const threeWays = `   A phone or a browser takes messages without an app only over HTTPS that it trusts.
   There are three ways:
   A domain name that leads to this machine: type it, such as alerts.example.com.
   Tailscale or the like: type the name that this machine has there, such as
   nas.tail1234.ts.net. HTTPS must be turned on there.
   Neither: type app. ntfy's app then reads the messages at this machine, over your
   network, without an account.
   Which way? Enter: another text.`

// askPublic asks for the name at which devices reach the gateway, unless the site has one. It sets
// neither device nor app if there is none.
func (a *asker) askPublic(first *firstConfig) error {
	for first.public() == "" {
		text, err := a.ask(threeWays)
		switch {
		case err != nil || text == "":
			return err
		case strings.EqualFold(text, toApp):
			first.setApp()
			return nil
		}
		named := new(firstConfig)
		if err := named.setSite(text); err != nil {
			a.explain(err.Error())
			continue
		}
		if named.public() == "" {
			a.explain("Phones do not trust the certificate of " + text + ", or there is none.")
			continue
		}
		first.site, first.port = named.site, ""
	}
	first.device = true
	return nil
}

// upperFirst returns a text that begins with an ASCII letter with a capital one.
func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// choice is where messages go, as far as it is known.
type choice struct {
	notifier.Recognized
	provider *mailbox.Provider // of the mailbox; nil for none
	address  string            // of the mailbox; "" if that is not known
	device   bool              // a phone or a browser, and no service
	app      bool              // ntfy's app, which reads an inbox, and no service
}

// name returns what a list calls the choice.
func (c *choice) name() string {
	switch {
	case c.device:
		return "This phone or browser: no app, no account; needs HTTPS that it trusts"
	case c.app:
		return "ntfy's app, which reads this machine over your network: no account, no domain"
	case c.provider != nil:
		return c.provider.Name
	}
	return c.Service.Name
}

// named returns the choices that text names or describes.
func named(text string) (found []*choice) {
	if device.IsMeant(text) {
		found = append(found, &choice{device: true}, &choice{app: true})
	}
	var services []notifier.Found
	if s := notifier.Named(text); s != nil {
		services = []notifier.Found{{ServiceInfo: *s}}
	} else {
		services = notifier.Search(text)
	}
	for _, s := range services {
		c := &choice{Recognized: notifier.Recognized{Service: s.ServiceInfo, Form: notifier.URLForms(s.Schemes[0])[0]}}
		if s.Schemes[0] == mailbox.Scheme {
			c.provider = mailbox.Find(text)
		}
		found = append(found, c)
	}
	return found
}

// maxChoices bounds the services among which a person chooses.
const maxChoices = 9

// choose returns where a text leads. It asks if there are several, and returns nil if there
// is none.
func (a *asker) choose(text string) (*choice, error) {
	recognized, err := notifier.Recognize(text)
	var found []*choice
	for _, r := range recognized {
		c := &choice{Recognized: r}
		if r.Service.Schemes[0] == mailbox.Scheme && len(r.Values.Texts["user"]) > 0 && !strings.Contains(text, "://") {
			c.provider, c.address = mailbox.Of(text), text
		}
		found = append(found, c)
	}
	if len(found) == 0 {
		if found = named(text); len(found) == 0 {
			a.explain(notRecognized(text, err).Error())
			return nil, nil
		}
	} else if found[0].Sure && (len(found) == 1 || !found[1].Sure) {
		return found[0], nil
	}
	if len(found) == 1 {
		return found[0], nil
	}
	var list strings.Builder
	list.WriteString("   Which one? Type its number, or Enter for another text.")
	for i, r := range found {
		if i == maxChoices {
			fmt.Fprintf(&list, "\n   and %d more: type a name, or caddy notify services in another terminal", len(found)-i)
			found = found[:i]
			break
		}
		fmt.Fprintf(&list, "\n   %d  %s", i+1, r.name())
	}
	answer, err := a.ask(list.String())
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(answer)
	switch {
	case answer == "":
		return nil, nil
	case err != nil: // a name, or another text
		return a.choose(answer)
	case n < 1 || n > len(found):
		a.explain("There is no " + answer + " in the list.")
		return a.choose(text)
	}
	return found[n-1], nil
}

// again ends the questions to which an empty answer leads back.
const again = " Enter: another text."

// complete asks for what is missing in the form of a service, and returns the URL, or
// "" if the person wants to begin again.
func (a *asker) complete(r *choice) (string, error) {
	fmt.Fprintf(a.out, "   %s", r.name())
	if r.What != "" {
		fmt.Fprintf(a.out, ": what you pasted is %s", r.What)
	}
	fmt.Fprintln(a.out)
	notes := []string{r.Note, r.Service.Setup}
	if r.provider != nil {
		notes = []string{r.provider.Setup}
	}
	for _, note := range notes {
		if note != "" {
			fmt.Fprintf(a.out, "   %s\n", markup.Printable(note))
		}
	}
	if r.Values.Texts == nil {
		r.Values.Texts = map[string][]string{}
	}
	var err error
	ready := true
	switch {
	case r.Service.Schemes[0] == mailbox.Scheme && r.Values.Scheme == "":
		ready, err = a.askMailbox(r)
	case r.Form.Address != "" && len(r.Values.Texts) == 0:
		ready, err = a.askAddress(r)
	default:
		err = a.askPassword(r)
	}
	if err != nil || !ready {
		return "", err
	}
	v := r.Values
	for {
		url, problems := r.Form.Build(v)
		if len(problems) == 0 {
			return url, nil
		}
		p := problems[0]
		i := slices.IndexFunc(r.Form.Fields, func(f notifier.URLField) bool { return f.Name == p.Param })
		if i < 0 {
			a.explain(p.Error())
			return "", nil
		}
		field := r.Form.Fields[i]
		if len(v.Texts[field.Name]) > 0 {
			a.explain(p.Error())
		}
		ask := a.ask
		if field.Secret {
			ask = a.askSecret
		}
		text, err := ask(fmt.Sprintf("   %s (%s)?%s", field.Doc, field.Name, again))
		if err != nil || text == "" {
			return "", err
		}
		v.Texts[field.Name] = []string{text}
		if field.Kind == notifier.KindList {
			v.Texts[field.Name] = strings.Fields(strings.ReplaceAll(text, ",", " "))
		}
	}
}

// askMailbox asks for the mailbox that sends and gets the mails, and for its password. It
// returns false if the person wants to begin again.
func (a *asker) askMailbox(r *choice) (bool, error) {
	for r.address == "" {
		example := "you@example.com"
		if r.provider != nil {
			example = r.provider.Example()
		}
		text, err := a.ask("   Your e-mail address, such as " + example + "?" + again)
		if err != nil || text == "" {
			return false, err
		}
		known := r.provider
		if known == nil {
			known = mailbox.Of(text)
		}
		if known == nil {
			known = mailbox.Other
		}
		if err := known.CheckAddress(text); err != nil {
			a.explain(upperFirst(err.Error()) + ".")
			continue
		}
		r.provider, r.address = known, text
	}
	if r.provider == nil {
		r.provider = mailbox.Other
	}
	if r.provider.Closed != "" {
		a.explain(r.provider.Closed + ".")
		return false, nil
	}
	password, err := a.askSecret("   " + r.provider.Password + "?" + again)
	if err != nil || password == "" {
		return false, err
	}
	r.Values = r.provider.Values(r.address, password)
	if r.provider != mailbox.Other {
		return true, nil
	}
	_, domain, _ := strings.Cut(r.address, "@")
	server, err := a.ask("   Its mail server, such as mail." + domain + "? Enter: " + domain + ".")
	if server != "" {
		r.Values.Texts["smtp"] = []string{server}
	}
	return true, err
}

// askAddress asks for the address that a service shows, and takes it apart. It returns false
// if the person wants to begin again.
func (a *asker) askAddress(r *choice) (bool, error) {
	for {
		text, err := a.ask("   The address that " + r.Service.Name + " shows, such as " + r.Form.Address + "?" + again)
		if err != nil || text == "" {
			return false, err
		}
		found, _ := notifier.Recognize(text)
		i := slices.IndexFunc(found, func(f notifier.Recognized) bool {
			return f.Service.Name == r.Service.Name && len(f.Values.Texts) > 0
		})
		if i >= 0 {
			r.Form, r.Values = found[i].Form, found[i].Values
			return true, nil
		}
		a.explain("This is no address that " + r.Service.Name + " gives out.")
	}
}

// askPassword asks for the password of a user, if the form has one without it.
func (a *asker) askPassword(r *choice) error {
	texts := r.Values.Texts
	i := slices.IndexFunc(r.Form.Fields, func(f notifier.URLField) bool { return f.InURL && f.Name == "password" && !f.Required })
	if i < 0 || len(texts["user"]) == 0 || len(texts["password"]) > 0 {
		return nil
	}
	password, err := a.askSecret("   The password of " + markup.Printable(texts["user"][0]) + "? Enter: none.")
	if password != "" {
		texts["password"] = []string{password}
	}
	return err
}

// askKeep asks whether messages are kept.
func (a *asker) askKeep() (bool, error) {
	for {
		text, err := a.ask(`3. Keep messages that cannot be delivered at once, and try again, also after a restart?
   Enter or yes; no.`)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(text) {
		case "", "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
		a.explain("Answer yes or no.")
	}
}

// urlOf returns the notification URL that a text stands for, without a question, and
// the name of its service.
func urlOf(text string) (url, service string, err error) {
	found, err := notifier.Recognize(text)
	if err != nil {
		if choices := named(text); len(choices) > 0 && choices[0].Service.Name != "" {
			return "", "", fmt.Errorf("%q is not enough; run this in a terminal, which asks for the rest, "+
				"or give the notification URL, as caddy notify services %s shows it", text, text)
		}
		return "", "", notRecognized(text, err)
	}
	r := found[0]
	if len(found) > 1 && (!r.Sure || found[1].Sure) {
		var names []string
		for _, f := range found[:min(len(found), maxChoices)] {
			names = append(names, f.Service.Name)
		}
		return "", "", fmt.Errorf("the text may be one of %s; "+
			"give the whole notification URL, as caddy notify services <name> shows it",
			strings.Join(names, ", "))
	}
	url, problems := r.Form.Build(r.Values)
	if len(problems) > 0 {
		if r.What == "" || r.Note != "" && len(r.Values.Texts) == 0 {
			return "", "", errors.New(r.Note)
		}
		return "", "", fmt.Errorf("it is %s of %s, which needs more: %w; "+
			"give the whole notification URL, as caddy notify services %s shows it",
			r.What, r.Service.Name, problems[0], r.Service.Schemes[0])
	}
	return url, r.Service.Name, nil
}

// notRecognized returns the error for a text that belongs to no service. err comes from
// [notifier.Recognize]; its remedy for texts other than URLs fits a page, not a command.
func notRecognized(text string, err error) error {
	if e, ok := errors.AsType[*notifier.URLError](err); ok && !strings.Contains(text, "://") {
		return errors.New(e.Problem + "; give a notification URL: caddy notify services <name> shows how it is written")
	}
	return err
}

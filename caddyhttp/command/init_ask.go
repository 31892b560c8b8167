package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// isTerminal reports whether a person answers.
func isTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// asker asks questions.
type asker struct {
	lines *bufio.Scanner // nil if nobody answers
	out   io.Writer
}

// maxLine is the length of the longest line that is read. URLs with a whole file in
// them are this long.
const maxLine = 64 << 10

// read makes a reader the place of the answers.
func (a *asker) read(in io.Reader) {
	a.lines = bufio.NewScanner(in)
	a.lines.Buffer(nil, maxLine)
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

// explain tells why an answer cannot be used.
func (a *asker) explain(problem string) { fmt.Fprintf(a.out, "%s\n\n", markup.Printable(problem)) }

// askSite asks who may send.
func (a *asker) askSite() (string, error) {
	for {
		text, err := a.ask(`1. Who may send messages?
   Enter: programs on this machine, at http://127.0.0.1` + initPort + `, without a password.
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

// askURL asks where messages go, and returns the notification URL and the name of its
// service.
func (a *asker) askURL() (url, service string, err error) {
	for {
		text, err := a.ask(`2. Where do messages go?
   Paste what a service gave you: the address of a webhook, a token, an e-mail address,
   a notification URL. Or choose: type what you use, such as telegram, ntfy, gmail or
   teams, or what it is for, such as chat, phone, mail or sms.`)
		if err != nil {
			return "", "", err
		}
		if text == "" {
			continue
		}
		r, err := a.choose(text)
		if err != nil {
			return "", "", err
		}
		if r == nil {
			continue
		}
		if url, err = a.complete(r); err != nil || url != "" {
			return url, r.Service.Name, err
		}
	}
}

// maxChoices bounds the services among which a person chooses.
const maxChoices = 9

// choose returns the service that a text belongs to. It asks if there are several, and
// returns nil if there is none.
func (a *asker) choose(text string) (*notifier.Recognized, error) {
	found, err := notifier.Recognize(text)
	if err != nil || len(found) == 0 {
		var services []notifier.Found
		if s := notifier.FindService(strings.TrimSuffix(text, "://")); s != nil {
			services = []notifier.Found{{ServiceInfo: *s}}
		} else {
			services = notifier.Search(text)
		}
		if len(services) == 0 {
			a.explain(notRecognized(text, err).Error())
			return nil, nil
		}
		for _, s := range services {
			found = append(found, notifier.Recognized{Service: s.ServiceInfo, Form: notifier.URLForms(s.Schemes[0])[0]})
		}
	} else if found[0].Sure && (len(found) == 1 || !found[1].Sure) {
		return &found[0], nil
	}
	if len(found) == 1 {
		return &found[0], nil
	}
	var list strings.Builder
	list.WriteString("   Which one? Type its number, or Enter for another text.")
	for i, r := range found {
		if i == maxChoices {
			fmt.Fprintf(&list, "\n   and %d more: type a name, or caddy notify services in another terminal", len(found)-i)
			found = found[:i]
			break
		}
		fmt.Fprintf(&list, "\n   %d  %s", i+1, r.Service.Name)
	}
	answer, err := a.ask(list.String())
	if err != nil {
		return nil, err
	}
	if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(found) {
		return &found[n-1], nil
	}
	return nil, nil
}

// complete asks for what is missing in the form of a service, and returns the URL, or
// "" if the person wants to begin again.
func (a *asker) complete(r *notifier.Recognized) (string, error) {
	v := r.Values
	if v.Texts == nil {
		v.Texts = map[string][]string{}
	}
	fmt.Fprintf(a.out, "   %s", r.Service.Name)
	if r.What != "" {
		fmt.Fprintf(a.out, ": what you pasted is %s", r.What)
	}
	fmt.Fprintln(a.out)
	for _, note := range []string{r.Note, r.Service.Setup} {
		if note != "" {
			fmt.Fprintf(a.out, "   %s\n", markup.Printable(note))
		}
	}
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
		text, err := a.ask(fmt.Sprintf("   %s (%s)? Enter: another text.", field.Doc, field.Name))
		if err != nil || text == "" {
			return "", err
		}
		v.Texts[field.Name] = []string{text}
		if field.Kind == notifier.KindList {
			v.Texts[field.Name] = strings.Fields(strings.ReplaceAll(text, ",", " "))
		}
	}
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
		return "", "", notRecognized(text, err)
	}
	r := found[0]
	if len(found) > 1 && (!r.Sure || found[1].Sure) {
		var names []string
		for _, f := range found[:min(len(found), maxChoices)] {
			names = append(names, f.Service.Name)
		}
		return "", "", fmt.Errorf("the text may be one of %s; give the whole notification URL, as caddy notify services <name> shows it", strings.Join(names, ", "))
	}
	url, problems := r.Form.Build(r.Values)
	if len(problems) > 0 {
		if r.What == "" || r.Note != "" && len(r.Values.Texts) == 0 {
			return "", "", errors.New(r.Note)
		}
		return "", "", fmt.Errorf("it is %s of %s, which needs more: %w; give the whole notification URL, as caddy notify services %s shows it", r.What, r.Service.Name, problems[0], r.Service.Schemes[0])
	}
	return url, r.Service.Name, nil
}

// notRecognized returns the error for a text that is of no service. err is that of
// [notifier.Recognize], whose remedy for other texts than URLs is one of a page.
func notRecognized(text string, err error) error {
	if e, ok := errors.AsType[*notifier.URLError](err); ok && !strings.Contains(text, "://") {
		return errors.New(e.Problem + "; give a notification URL: caddy notify services <name> shows how it is written")
	}
	return err
}

package console

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/internal/percent"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/mailbox"
)

// builderForm is a form for the URLs of a service, with its values.
type builderForm struct {
	service     *notifier.ServiceInfo
	forms       []*notifier.URLForm
	number      int // number of the form, from 1
	values      notifier.URLValues
	address     string            // the address that the service hands out, in place of its parts
	provider    *mailbox.Provider // for a form that asks only for an account there; nil for the whole form
	account     account
	tags        string
	problems    []*notifier.URLError
	own         map[string]string // problems of fields that are no parameters
	problem     string            // problem of the URL as a whole
	tagsProblem error
	shown       bool   // secrets are readable
	recognized  string // description of the text that filled in the form; "" for none
	note        string // note about that text
	unread      string // a pasted text that does not fill in the form
	status      string // status of a test
	result      string // result of a test
	line        string // line for a Caddyfile
	url         string // set if it cannot be added to the text of the key
	into        string // the saved key that gets the destination instead; "" for none
	warnings    []string
	network     *view.Network // set if the URL leads to a private network that may not be reached
}

// account is an account at a provider.
type account struct{ address, password string }

// The fields of a form that are no parameters.
const (
	addressField  = "address"  // the address that the service hands out
	accountField  = "account"  // address of an account
	passwordField = "password" // password of the account
)

// recognizedForm returns the form filled in from a text.
func recognizedForm(x notifier.Recognized, text, tags string) *builderForm {
	f := &builderForm{
		service: &x.Service, forms: notifier.URLForms(x.Service.Schemes[0]), values: x.Values, tags: tags, recognized: x.What,
		note: x.Note,
	}
	f.setForm(x.Form)
	switch text = strings.TrimSpace(text); {
	case providerOf(x, text) != nil:
		provider := providerOf(x, text)
		if f.note = cmp.Or(provider.Closed, f.note); provider.Closed == "" {
			f.provider, f.account.address = provider, text
		}
	case f.form().Address != "" && strings.HasPrefix(text, "https://"):
		f.address = text
		for _, field := range f.form().Fields {
			if field.InAddress {
				delete(f.values.Texts, field.Name)
			}
		}
		return f
	}
	if len(x.Values.Texts)+len(x.Values.Maps) == 0 {
		f.recognized, f.note, f.problem = "", "", "what you pasted is "+x.What
		if x.Note != "" {
			f.problem += ": " + x.Note
		}
	}
	return f
}

// providerOf returns the provider of the mailbox whose address the text is, or nil.
func providerOf(x notifier.Recognized, text string) *mailbox.Provider {
	if x.Service.Schemes[0] != mailbox.Scheme || len(x.Values.Texts["user"]) == 0 || strings.Contains(text, "://") {
		return nil
	}
	return mailbox.Of(strings.TrimSpace(text))
}

// setProvider makes the form ask only for an account at the provider with a name, if there is one.
func (f *builderForm) setProvider(name string) bool {
	if f.service.Schemes[0] == mailbox.Scheme {
		f.provider = mailbox.Find(name)
	}
	return f.provider != nil
}

// setForm chooses a form.
func (f *builderForm) setForm(form *notifier.URLForm) {
	f.number = 1 + slices.IndexFunc(f.forms, func(o *notifier.URLForm) bool { return o.Template == form.Template })
}

// takeApart sets the values that follow from the account or the address. If they cannot be used, it
// sets their problems.
func (f *builderForm) takeApart(h *builder) {
	f.own = map[string]string{}
	switch {
	case f.provider != nil:
		err := f.provider.CheckAddress(f.account.address)
		if err != nil {
			f.own[accountField] = err.Error()
		}
		if f.account.password == "" {
			f.own[passwordField] = "the " + lowerFirst(f.provider.Password) + " is missing"
		}
		if err == nil {
			f.values = f.provider.Values(f.account.address, f.account.password)
		}
	case f.address != "":
		found, err := h.recognize(f.address)
		i := slices.IndexFunc(found, func(x notifier.Recognized) bool { return x.Service.Name == f.service.Name && len(x.Values.Texts) > 0 })
		switch {
		case err == nil && i >= 0:
			f.setForm(found[i].Form)
			f.values.Scheme = cmp.Or(found[i].Values.Scheme, f.values.Scheme)
			maps.Copy(f.values.Texts, found[i].Values.Texts)
		case len(found) > 0 && found[0].Note != "":
			f.own[addressField] = found[0].Note
		default:
			f.own[addressField] = "it is no address that " + f.service.Name + " gives out; they look like " + f.form().Address
		}
	}
}

// build returns the URL. If there is none, ok is false and build sets the problems.
func (f *builderForm) build(h *builder) (made string, ok bool) {
	f.takeApart(h)
	if len(f.own) > 0 {
		return "", false
	}
	made, f.problems = f.form().Build(f.values)
	if f.address == "" && f.form().Address != "" &&
		!slices.ContainsFunc(f.form().Fields, func(x notifier.URLField) bool { return x.InAddress && f.given(x) }) {
		before := len(f.problems)
		f.problems = slices.DeleteFunc(f.problems, func(e *notifier.URLError) bool {
			return slices.ContainsFunc(f.form().Fields, func(x notifier.URLField) bool { return x.InAddress && x.Name == e.Param })
		})
		if len(f.problems) < before {
			f.own[addressField] = "the address is missing; " + f.service.Name + " shows it, such as " + f.form().Address
		}
	}
	return made, len(f.problems)+len(f.own) == 0
}

// form returns the chosen form.
func (f *builderForm) form() *notifier.URLForm { return f.forms[f.number-1] }

// The prefixes of field names in a request, before the name of a parameter. A map has a key and a
// value for each entry.
const (
	fieldParam    = "p."
	fieldMapKey   = "k."
	fieldMapValue = "v."
)

// postedForm returns the posted form, or nil if there is none for the service in the query string.
func postedForm(r *http.Request) *builderForm {
	scheme := r.URL.Query().Get(buildQuery)
	forms := notifier.URLForms(scheme)
	number, err := strconv.Atoi(r.PostForm.Get("form"))
	if err != nil || number < 1 || number > len(forms) {
		return nil
	}
	f := &builderForm{service: notifier.FindService(scheme), forms: forms, number: number, tags: r.PostForm.Get("tags")}
	f.setProvider(r.PostForm.Get(providerQuery))
	f.address = strings.TrimSpace(r.PostForm.Get(addressField))
	f.account = account{strings.TrimSpace(r.PostForm.Get(accountField)), strings.TrimSpace(r.PostForm.Get(passwordField))}
	f.values = notifier.URLValues{Scheme: r.PostForm.Get("scheme"), Texts: map[string][]string{}, Maps: map[string]map[string]string{}}
	for _, field := range f.form().Fields {
		if field.Kind == notifier.KindMap {
			f.readMap(field.Name, r.PostForm[fieldMapKey+field.Name], r.PostForm[fieldMapValue+field.Name])
		} else if posted := r.PostForm[fieldParam+field.Name]; len(posted) > 0 {
			// An unchecked checkbox is not posted, but the hidden field before it is.
			f.readText(field, posted[len(posted)-1])
		}
	}
	return f
}

// readMap reads the value of a map. White space at the ends of texts comes from copying and is
// dropped.
func (f *builderForm) readMap(name string, keys, values []string) {
	for i, key := range keys {
		if key = strings.TrimSpace(key); key == "" || i >= len(values) {
			continue
		}
		if f.values.Maps[name] == nil {
			f.values.Maps[name] = map[string]string{}
		}
		f.values.Maps[name][key] = strings.TrimSpace(values[i])
	}
}

// readText reads the value of a field that is no map.
func (f *builderForm) readText(field notifier.URLField, text string) {
	text = strings.TrimSpace(text)
	add := func(item string) { f.values.Texts[field.Name] = append(f.values.Texts[field.Name], item) }
	switch {
	case field.Path:
		for segment := range strings.SplitSeq(text, "/") {
			if segment != "" {
				add(percent.DecodeText(segment))
			}
		}
		f.values.Slash = f.form().Slash && strings.HasSuffix(text, "/")
	case field.Kind == notifier.KindList:
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				add(line)
			}
		}
	default:
		add(text)
	}
}

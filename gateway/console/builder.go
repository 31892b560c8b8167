package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/docs"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	savedpkg "github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/mailbox"
)

// builder writes the pages that add a destination to a key.
type builder struct{ *shared }

// The pages that add a destination to a key are a list of services with a field that recognizes
// pasted texts, and a form with the parameters of one service. The form tests the destination and
// saves it, or shows the line for a Caddyfile. Both work without a script. Values travel only in
// the bodies of requests, never in an address.

// The query parameters of these pages, at the address of a key. build is a scheme of a service, or
// empty for the list of services. search is a text to find services by. form is the number of one
// of the service's forms of URLs. provider is the name of one of the service's providers.
const (
	buildQuery    = "build"
	searchQuery   = "search"
	formQuery     = "form"
	providerQuery = "provider"
)

// addedQuery is the query parameter that tells the page of a key the service of a destination just
// saved.
const addedQuery = "added"

// Values of the field do of a form.
const (
	builderLive = "live" // lists what is found, and never opens a form
	builderSave = "save" // save the destination
	builderTest = "test" // send a test message
	builderInto = "into" // save the destination into the saved key that the field into names
	builderShow = "show" // show the form again with its secrets
)

// wayField is a field with the number of the form to change to.
const wayField = "way"

// asField is a field with the scheme of the service that a text is for.
const asField = "as"

// builderAt says where the pages are and what they can do there.
type builderAt struct {
	key     string
	address string // address of the key's page, relative to the request
	saves   bool   // the client may change the key, which is a saved one
	tests   bool   // a test message may be sent
	into    bool   // the client may save a destination into another key, because this one is of the configuration
}

func (h *builder) builderAt(r *http.Request, key string) builderAt {
	at := builderAt{key: key, address: httpapi.ConsoleKey(r, key), saves: h.Resolved.Keys[key] == nil && h.MayManageSaved(r) == nil}
	at.into = h.Resolved.Keys[key] != nil && h.MayManageSaved(r) == nil
	at.tests = at.saves || h.Resolved.Stateless
	return at
}

// serveBuilder writes the list of services or the empty form of one.
func (h *builder) serveBuilder(w http.ResponseWriter, r *http.Request, key string) error {
	at, query := h.builderAt(r, key), r.URL.Query()
	if scheme := strings.ToLower(query.Get(buildQuery)); scheme != "" {
		if f := h.newForm(scheme, query.Get(formQuery)); f != nil {
			f.setProvider(query.Get(providerQuery))
			return h.writeBuilderForm(w, r, at, f)
		}
	}
	return h.writeBuilderList(w, r, at, query.Get(searchQuery))
}

// newForm returns the empty form of the service with a scheme, or nil if the site permits no such
// service. number selects the form; without a valid one, it is the first.
func (h *builder) newForm(scheme, number string) *builderForm {
	info := notifier.FindService(scheme)
	if info == nil || !slices.Contains(info.Schemes, scheme) || !h.Resolved.Services.Permits(info.Schemes) {
		return nil
	}
	forms := notifier.URLForms(scheme)
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(forms) {
		n = 1
	}
	return &builderForm{service: info, forms: forms, number: n}
}

// writeBuilderList writes the list of services with the matches for a text.
func (h *builder) writeBuilderList(w http.ResponseWriter, r *http.Request, at builderAt, text string) error {
	p := view.ServicesPage{Address: at.address, Key: at.key, Text: text}
	if strings.TrimSpace(text) == "" || device.IsMeant(text) {
		p.Device = h.deviceOffer(r, at.key)
	}
	service := func(s *notifier.ServiceInfo, reason string) view.Service {
		return view.Service{Name: s.Name, Scheme: s.Schemes[0], Group: string(s.Groups[0]), Reason: reason}
	}
	if strings.TrimSpace(text) != "" {
		for _, f := range notifier.Search(text) {
			if h.Resolved.Services.Permits(f.ServiceInfo.Schemes) {
				found := service(&f.ServiceInfo, f.Reason)
				if provider := mailbox.Find(text); provider != nil && found.Scheme == mailbox.Scheme {
					found.Name, found.Provider, found.Reason = provider.Name, provider.Name, f.Name+": an address and its "+lowerFirst(provider.Password)
				}
				p.Found = append(p.Found, found)
			}
		}
		p.Senders = h.senders(r, at.key, text)
		if host := localHost(text); host != "" && at.saves && h.blocks(host) {
			p.Network = view.NewNetwork()
		}
		recognized, err := h.recognize(text)
		for _, x := range recognized {
			guess := view.Guess{Service: service(&x.Service, ""), What: x.What, Note: x.Note}
			if provider := providerOf(x, text); provider != nil {
				guess.Name, guess.Note = provider.Name, cmp.Or(provider.Closed, guess.Note)
			}
			p.Guesses = append(p.Guesses, guess)
		}
		if len(p.Found)+len(p.Guesses)+len(p.Senders) == 0 && p.Device == nil {
			p.Problem = upperFirst(err.Error())
		}
	}
	all := slices.DeleteFunc(notifier.Services(), func(s notifier.ServiceInfo) bool { return !h.Resolved.Services.Permits(s.Schemes) })
	for _, g := range notifier.Groups() {
		group := view.ServiceGroup{Title: g.Title()}
		for i := range all {
			if slices.Contains(all[i].Groups, g) {
				group.Services = append(group.Services, service(&all[i], ""))
			}
		}
		if len(group.Services) > 0 {
			p.Groups = append(p.Groups, group)
		}
	}
	return h.WritePage(w, r, http.StatusOK, httpapi.RouteConsoleKeys, p)
}

// deviceOffer returns the way to make a phone or a browser a destination of a key.
func (h *builder) deviceOffer(r *http.Request, key string) *view.DeviceOffer {
	switch _, err := h.Lookup(key).Key(r.Context()); {
	case !h.Has.Console:
		return nil // the console has the page that invites
	case !h.Has.Push:
		return &view.DeviceOffer{Problem: "The operator has to turn it on first", Lacks: h.lacksPush(r)}
	case err != nil:
		return &view.DeviceOffer{Problem: "The key does not exist yet: save a destination first, then invite the device on the page of the key"}
	}
	return &view.DeviceOffer{Address: httpapi.ConsoleKey(r, key)}
}

// errServiceOff is returned for a text that belongs to a service that the site does
// not permit.
var errServiceOff = errors.New("the services that the text may belong to are not permitted here; the operator can allow them with services")

// recognize returns the permitted services that a text may belong to. If there is none, it returns
// an error without the text.
func (h *builder) recognize(text string) ([]notifier.Recognized, error) {
	found, err := notifier.Recognize(text)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(x notifier.Recognized) bool { return !h.Resolved.Services.Permits(x.Service.Schemes) })
	if len(found) == 0 {
		return nil, errServiceOff
	}
	return found, nil
}

// enterBuilder reads a form of these pages. It is not an alert, so it counts like a message without
// a key. If the error is nil, the caller must call leave.
func (h *builder) enterBuilder(w http.ResponseWriter, r *http.Request) (site.Admission, error) {
	e, err := h.api.Sender.Enter(r, false)
	if err != nil {
		return site.Admission{}, err
	}
	if err = h.readPageForm(w, r); err == nil && !api.PrefersHTML(r) {
		err = errBuilderHTML
	}
	if err != nil {
		e.Leave()
		return site.Admission{}, err
	}
	return e, nil
}

var errBuilderHTML = api.Errorf(http.StatusNotAcceptable,
	"this is a page for browsers (Accept: text/html); programs save URLs with POST /add/{KEY}")

// postBuilder handles a form of these pages.
func (h *builder) postBuilder(w http.ResponseWriter, r *http.Request, key string) error {
	e, err := h.enterBuilder(w, r)
	if err != nil {
		return err
	}
	defer e.Leave()
	at := h.builderAt(r, key)
	if r.URL.Query().Get(buildQuery) == "" {
		return h.findService(w, r, at)
	}
	f := postedForm(r)
	if f == nil {
		return api.Errorf(http.StatusBadRequest, "there is no such service; choose one from the list")
	}
	if n, err := strconv.Atoi(r.PostForm.Get(wayField)); err == nil && n >= 1 && n <= len(f.forms) {
		f.takeApart(h)
		f.provider, f.address, f.number = nil, "", n // the values stay
		return h.writeBuilderForm(w, r, at, f)
	}
	do := r.PostForm.Get("do")
	if do == builderShow {
		f.shown = true
		return h.writeBuilderForm(w, r, at, f)
	}
	made, built := f.build(h)
	tags, err := splitPageTags(f.tags)
	f.tagsProblem = err
	if !built || err != nil {
		return h.writeBuilderForm(w, r, at, f)
	}
	d := destination{url: made, tags: tags}
	switch {
	case do == builderTest && at.tests:
		var resp *api.Response
		if resp, f.warnings, err = h.testDestination(w, r, at, d); err == nil {
			f.status, f.result = testResult(resp.Results[0])
		}
	case do == builderSave && at.saves, do == builderInto && at.into:
		to := at
		if do == builderInto {
			f.into = r.PostForm.Get(builderInto)
			to = h.builderAt(r, f.into)
			if err = site.CheckKeyName(f.into); err == nil && !to.saves {
				err = errInto
			}
		}
		var number int
		if err == nil {
			number, err = h.saveDestination(r, to, d)
		}
		if errors.Is(err, savedpkg.ErrNotAdded) {
			f.url = d.url
		}
		if err == nil {
			query := url.Values{addedQuery: {f.service.Schemes[0]}}
			return httpapi.SeeOther(w, to.address, query.Encode()+"#destination-"+strconv.Itoa(number))
		}
	default:
		err = f.setLine(h, at, d)
	}
	if err != nil {
		f.problem = err.Error()
		if blocked, ok := errors.AsType[*egress.BlockedError](err); ok && notifier.IsLocalHost(blocked.Addr.String()) {
			f.network = view.NewNetwork()
		}
	}
	return h.writeBuilderForm(w, r, at, f)
}

// errInto is returned for a key that another one stands before.
var errInto = errors.New("the configuration has this key, so it cannot be changed here; choose another name")

// findService handles the field of the list of services: it writes the form of the service that the
// text belongs to, or the list with the matches.
func (h *builder) findService(w http.ResponseWriter, r *http.Request, at builderAt) error {
	text := r.PostForm.Get("text")
	live := r.PostForm.Get("do") == builderLive
	if live {
		return h.writeBuilderList(w, r, at, text)
	}
	as := r.PostForm.Get(asField)
	recognized, err := h.recognize(text)
	for _, x := range recognized {
		fits := slices.Contains(x.Service.Schemes, as) || as == "" && x.Sure && len(x.Values.Texts)+len(x.Values.Maps) > 0
		if fits && (as != "" || len(recognized) == 1 || !recognized[1].Sure) {
			return h.writeBuilderForm(w, r, at, recognizedForm(x, text, r.PostForm.Get("tags")))
		}
	}
	if f := h.newForm(as, ""); f != nil && text != "" {
		f.problem = "what you pasted is not recognised as something of " + f.service.Name + "; write it into its field below"
		if err != nil && !strings.Contains(err.Error(), "no service gives out") {
			f.problem = err.Error()
		}
		f.unread = text
		return h.writeBuilderForm(w, r, at, f)
	}
	// The name or the scheme of a service opens its form, and so does the name of a provider.
	if len(docs.FindPrograms(text)) > 0 { // it may be a program that sends
		return h.writeBuilderList(w, r, at, text)
	}
	if found := notifier.Named(text); found != nil && h.Resolved.Services.Permits(found.Schemes) {
		return h.writeBuilderForm(w, r, at, h.newForm(found.Schemes[0], ""))
	}
	if f := h.newForm(mailbox.Scheme, ""); f != nil && f.setProvider(text) {
		return h.writeBuilderForm(w, r, at, f)
	}
	return h.writeBuilderList(w, r, at, text)
}

// splitPageTags returns the tags in the field of a form.
func splitPageTags(text string) ([]string, error) {
	tags := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
	for _, tag := range tags {
		if err := site.CheckTag(tag); err != nil {
			return nil, err
		}
	}
	return tags, nil
}

// destination is a URL that is not saved yet, with its tags.
type destination struct {
	url  string
	tags []string
}

// setLine sets the line of a Caddyfile for a destination. For a saved key, the error is the reason
// why the destination cannot be saved.
func (f *builderForm) setLine(h *builder, at builderAt, d destination) error {
	f.line = strings.Join(append([]string{"url", d.url}, d.tags...), " ")
	if !at.saves {
		return nil
	}
	t, err := h.savedTarget(d)
	if err != nil {
		return err
	}
	f.warnings = t.Warnings()
	h.Saved.Sender.Release(t.Destination)
	return nil
}

// savedTarget returns the target of a destination under the rules of saved keys. The error is the
// reason why it cannot be saved.
func (h *builder) savedTarget(d destination) (notifier.Target, error) {
	return h.Saved.Target(appriseconfig.Entry{URL: d.url, Tags: d.tags})
}

// saveDestination adds a destination to a saved key, which it creates if needed. It returns the
// number of the destination in the key.
func (h *builder) saveDestination(r *http.Request, at builderAt, d destination) (number int, err error) {
	t, err := h.savedTarget(d)
	if err != nil {
		return 0, err
	}
	h.Saved.Sender.Release(t.Destination)
	return h.Changes(r).AddURL(r.Context(), at.key, d.url, d.tags)
}

// testDestination sends a test message to a destination. For a saved key, the rules of saved keys
// apply as if the destination were saved already. Otherwise the rules of messages with URLs apply.
func (h *builder) testDestination(w http.ResponseWriter, r *http.Request, at builderAt, d destination) (resp *api.Response,
	warnings []string, err error,
) {
	// The test counts like a message with a client's URL.
	e, err := h.Shared.InFlight.EnterFetch(h.Resolved.Limits.InFlight, httpapi.ClientAddress(r))
	if err != nil {
		return nil, nil, err
	}
	defer e.Leave()
	k := &site.Key{Name: at.key, Log: h.Log}
	var t notifier.Target
	if at.saves {
		s := h.Saved
		if t, err = h.savedTarget(d); err != nil {
			return nil, nil, err
		}
		defer s.Sender.Release(t.Destination)
		k.Limits, k.Log = s.Limits, s.Log
	} else {
		if t.Destination, err = h.api.Sender.ParseClientURL(d.url); err != nil {
			return nil, nil, err
		}
		defer t.Close()
		if err := t.CheckHost(); err != nil {
			return nil, nil, err
		}
		k.Limits = h.Resolved.Limits.Client
	}
	resp, err = h.api.Sender.SendTest(w, r, k, &message.Selection{Targets: []notifier.Target{t}, Transient: !at.saves})
	return resp, t.Warnings(), err
}

// testURL handles a request to test a URL that is not saved.
func (h *builder) testURL(w http.ResponseWriter, r *http.Request, name string) error {
	if err := h.MayManageSaved(r); err != nil {
		return err
	}
	if err := h.Saved.CheckSaved(name); err != nil {
		return err
	}
	tags, err := splitPageTags(r.PostForm.Get("tags"))
	if err != nil {
		return api.Errorf(http.StatusBadRequest, "%w", err)
	}
	d := destination{url: r.PostForm.Get("url"), tags: tags}
	t, err := h.savedTarget(d)
	if err != nil {
		return api.Errorf(http.StatusBadRequest, "%w", err)
	}
	h.Saved.Sender.Release(t.Destination)
	resp, _, err := h.testDestination(w, r, builderAt{key: name, saves: true}, d)
	if err != nil {
		return err
	}
	if api.PrefersHTML(r) {
		resp.Status = http.StatusOK // 200 as on the page of a key, which shows the result
	}
	resp.Write(w, r)
	return nil
}

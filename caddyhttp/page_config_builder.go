package caddyhttp

import (
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/caddyhttp/configstore"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
)

// The pages that make a notification URL for a key: a list of the services, a
// form with the parameters of one, and the URL. They work without a script.
// Values travel in the bodies of requests only, never in an address.
var (
	//go:embed page_config_builder.html
	builderParts string
	//go:embed page_config_builder_list.html
	builderListHTML string
	//go:embed page_config_builder_form.html
	builderFormHTML string
	//go:embed page_config_builder_url.html
	builderURLHTML string
	//go:embed page_config_builder.js
	builderJS string

	builderListTemplate = api.NewPageTemplate("builder list", builderListHTML, builderParts)
	builderFormTemplate = api.NewPageTemplate("builder form", builderFormHTML, builderParts)
	builderURLTemplate  = api.NewPageTemplate("builder URL", builderURLHTML, builderParts, destinationHTML)
)

// The query parameters of these pages, at the address of a key. build is a
// scheme of a service, or empty for the list of services. search filters that
// list by name. draft puts a URL into the editor.
const (
	buildQuery  = "build"
	searchQuery = "search"
	draftQuery  = "draft"
)

// Values of the field do of a form. Without it, the form makes the URL.
const (
	builderRead = "read" // parse the field url and fill in the form
	builderShow = "show" // show the form again with its secrets
)

// builderPage is the data that the pages have in common.
type builderPage struct {
	Root string // as in configPageData
	Key  string
	JS   template.JS
}

// Title returns the title of the page.
func (p builderPage) Title() string { return "Add a destination to " + p.Key }

// Address returns the address of the page of the key.
func (p builderPage) Address() string { return p.Root + "cfg/" + p.Key }

func newBuilderPage(r *http.Request, key, js string) builderPage {
	return builderPage{rootOf(r.URL.Path), key, template.JS(js)}
}

// builderListPage is the page to choose a service.
type builderListPage struct {
	builderPage
	Query    string
	All      []notifier.ServiceInfo // for suggestions
	Services []notifier.ServiceInfo // that the query finds, or all
	Found    bool                   // the query finds services
	Problem  string                 // of the URL to take apart
}

// serveBuilder writes the list of services or the empty form of one.
func (h *Handler) serveBuilder(w http.ResponseWriter, r *http.Request, key string) error {
	if h.resolved.keys[key] != nil {
		return errKeyFixed(key)
	}
	query := r.URL.Query()
	all := h.permittedServices()
	found := findServices(all, query.Get(searchQuery))
	if scheme := strings.ToLower(query.Get(buildQuery)); scheme != "" {
		found = slices.DeleteFunc(all, func(s notifier.ServiceInfo) bool { return !slices.Contains(s.Schemes, scheme) })
	}
	if len(found) != 1 {
		return h.writeBuilderList(w, r, key, query.Get(searchQuery), "")
	}
	forms := notifier.URLForms(found[0].Schemes[0])
	number, err := strconv.Atoi(query.Get("form"))
	if err != nil || number < 1 || number > len(forms) {
		number = 1
	}
	return h.writeBuilderForm(w, r, key, &builderForm{service: &found[0], forms: forms, number: number})
}

func (h *Handler) writeBuilderList(w http.ResponseWriter, r *http.Request, key, query, problem string) error {
	p := builderListPage{builderPage: newBuilderPage(r, key, ""), Query: query, All: h.permittedServices(), Problem: problem}
	p.Services = findServices(p.All, query)
	if p.Found = len(p.Services) > 0; !p.Found {
		p.Services = p.All
	}
	return writeConfigPage(w, r, http.StatusOK, builderListTemplate(), p)
}

// permittedServices returns the services that the setting services permits.
func (h *Handler) permittedServices() []notifier.ServiceInfo {
	all := notifier.Services()
	if s := h.resolved.services; s != nil {
		all = slices.DeleteFunc(all, func(i notifier.ServiceInfo) bool { return !s.permits(i.Schemes) })
	}
	return all
}

// findServices returns the service named text or, if there is none, the
// services with text in their name or in a scheme.
func findServices(all []notifier.ServiceInfo, text string) (found []notifier.ServiceInfo) {
	text = strings.ToLower(strings.TrimSpace(text))
	for _, s := range all {
		if strings.ToLower(s.Name) == text {
			return []notifier.ServiceInfo{s}
		}
		if strings.Contains(strings.ToLower(s.Name), text) || slices.ContainsFunc(s.Schemes, func(scheme string) bool { return strings.Contains(scheme, text) }) {
			found = append(found, s)
		}
	}
	return found
}

// enterBuilder reads a form of these pages. It is not an alert, so it counts like a
// message without a key. After nil, the caller calls leave.
func (h *Handler) enterBuilder(w http.ResponseWriter, r *http.Request) (entry, error) {
	e, err := h.enter(r, "")
	if err != nil {
		return entry{}, err
	}
	if err = h.readPageForm(w, r); err == nil && !api.PrefersHTML(r) {
		err = errBuilderHTML
	}
	if err != nil {
		e.leave()
		return entry{}, err
	}
	return e, nil
}

// postBuilder handles a form of these pages.
func (h *Handler) postBuilder(w http.ResponseWriter, r *http.Request, key string) error {
	e, err := h.enterBuilder(w, r)
	if err != nil {
		return err
	}
	defer e.leave()
	if r.PostForm.Get("do") == builderRead {
		return h.readURL(w, r, key)
	}
	f := h.postedForm(r)
	if f == nil {
		return api.Errorf(http.StatusBadRequest, "there is no such service; choose one from the list")
	}
	if r.PostForm.Get("do") == builderShow {
		f.shown = true
		return h.writeBuilderForm(w, r, key, f)
	}
	url, problems := f.forms[f.number-1].Build(f.values)
	f.problems = problems
	tags, err := splitPageTags(f.tags)
	f.tagsProblem = err
	if len(problems) == 0 && err == nil {
		p, err := h.newBuilderURL(r, key, url, tags)
		if err == nil {
			return writeConfigPage(w, r, http.StatusOK, builderURLTemplate(), p)
		}
		f.problems = []*notifier.URLError{{Problem: err.Error()}}
	}
	return h.writeBuilderForm(w, r, key, f)
}

var errBuilderHTML = api.Errorf(http.StatusNotAcceptable, "this is a page for browsers (Accept: text/html); programs save URLs with POST /add/{KEY}")

// readURL parses the posted URL and writes the form with its values. The URL
// may also be an address that a service gives out, such as that of a webhook.
func (h *Handler) readURL(w http.ResponseWriter, r *http.Request, key string) error {
	url := strings.TrimSpace(r.PostForm.Get("url"))
	d, err := notifier.Parse(url, nil)
	if err == nil {
		err = h.resolved.services.check(d)
	}
	if err != nil {
		return h.writeBuilderList(w, r, key, "", notifier.WithSuggestion(url, err).Error())
	}
	defer d.Close()
	f := &builderForm{service: notifier.FindService(d.Schemes()[0]), forms: notifier.URLForms(d.Schemes()[0]), tags: r.PostForm.Get("tags")}
	form, values := d.Form()
	f.values = values
	f.number = 1 + slices.IndexFunc(f.forms, func(o *notifier.URLForm) bool { return o.Template == form.Template })
	return h.writeBuilderForm(w, r, key, f)
}

// splitPageTags returns the tags in the field of a form.
func splitPageTags(text string) ([]string, error) {
	tags := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
	for _, tag := range tags {
		if err := checkTag(tag); err != nil {
			return nil, err
		}
	}
	return tags, nil
}

// builderURLPage is the page with a URL that is not saved yet.
type builderURLPage struct {
	builderPage
	URL, Tags string
	Target    pageTarget
	Warnings  []string
	Problem   string // why it cannot be put into the editor
}

// newBuilderURL returns the page of a URL. The error is the reason why the URL
// cannot be saved.
func (h *Handler) newBuilderURL(r *http.Request, key, url string, tags []string) (p builderURLPage, err error) {
	s := h.resolved.saved
	t, err := s.target(appriseconfig.Entry{URL: url, Tags: tags})
	if err != nil {
		return p, err
	}
	defer s.sender.Release(t.Destination)
	p = builderURLPage{builderPage: newBuilderPage(r, key, destinationsJS), URL: url, Tags: strings.Join(tags, ", "), Warnings: t.Warnings()}
	p.Target = pageTarget{
		Number: 1, Service: t.Service(), URL: t.String(), Tags: p.Tags, Address: p.Address(),
		Fields: []pageField{{"url", url}, {"tags", p.Tags}}, Label: "Test " + t.Service(),
	}
	return p, nil
}

// postedURL returns the page of the URL in the fields url and tags of a form.
func (h *Handler) postedURL(r *http.Request, key string) (p builderURLPage, tags []string, err error) {
	if tags, err = splitPageTags(r.PostForm.Get("tags")); err == nil {
		p, err = h.newBuilderURL(r, key, r.PostForm.Get("url"), tags)
	}
	if err != nil {
		return p, nil, api.Errorf(http.StatusBadRequest, "%w", err)
	}
	return p, tags, nil
}

// serveDraft writes the page of a key with a URL appended to the text in the
// editor. It saves nothing.
func (h *Handler) serveDraft(w http.ResponseWriter, r *http.Request, key string) error {
	e, err := h.enterBuilder(w, r)
	if err != nil {
		return err
	}
	defer e.leave()
	made, tags, err := h.postedURL(r, key)
	if err != nil {
		return err
	}
	c := api.Config{Format: api.ConfigText}
	saved, err := h.resolved.saved.store.Load(r.Context(), key)
	switch {
	case err == nil:
		c = api.Config{Format: saved.Format, Text: saved.Text}
	case !errors.Is(err, configstore.ErrNotFound):
		return errSavedUnavailable(err)
	}
	if c.Text, err = appriseconfig.Append(c.Text, c.Format == api.ConfigYAML, made.URL, tags); err != nil {
		made.Problem = err.Error()
		return writeConfigPage(w, r, http.StatusOK, builderURLTemplate(), made)
	}
	return h.writeKeyPage(w, r, key, http.StatusOK, h.checkDraft(r.Context(), key, &c, false))
}

// testURL sends a test message to the URL in a form, under the rules of saved
// URLs, as if it were saved already.
func (h *Handler) testURL(w http.ResponseWriter, r *http.Request, name string) error {
	if h.resolved.keys[name] != nil {
		return errKeyFixed(name)
	}
	// The test counts like a message with a URL of a client.
	e, err := h.shared.inFlight.enterFetch(h.resolved.inFlight, clientAddress(r))
	if err != nil {
		return err
	}
	defer e.leave()
	p, tags, err := h.postedURL(r, name)
	if err != nil {
		return err
	}
	s := h.resolved.saved
	t, err := s.target(appriseconfig.Entry{URL: p.URL, Tags: tags})
	if err != nil {
		return api.Errorf(http.StatusBadRequest, "%w", err)
	}
	defer s.sender.Release(t.Destination)
	resp, err := h.sendTest(w, r, &key{name: name, limits: s.limits, log: s.log}, t)
	if err != nil {
		return err
	}
	if !api.PrefersHTML(r) {
		resp.Write(w, r)
		return nil
	}
	p.Target.Status, p.Target.Result = testResult(resp.Results[0])
	return writeConfigPage(w, r, http.StatusOK, builderURLTemplate(), p)
}

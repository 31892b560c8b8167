package migrate

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
)

// templatePrefix begins the names of variables with values for templates.
const templatePrefix = "APPRISE_TEMPLATE_"

// templates reports whether the Apprise API uses templates.
func (e environment) templates() bool {
	value := e["APPRISE_ALLOW_TEMPLATES"]
	return value == "" || isOn(value)
}

// templateValue returns the value of the environment for a name of a template. The name
// ignores case.
func (e environment) templateValue(name string) (value string, ok bool) {
	for variable, value := range e {
		if own, found := strings.CutPrefix(variable, templatePrefix); found && strings.EqualFold(own, name) && strings.TrimSpace(value) != "" {
			return value, true
		}
	}
	return "", false
}

// template returns the entry of a URL with variables, as a file that import_apprise reads can
// have it.
func (c *converter) template(key string, e appriseconfig.Entry) (out appriseconfig.Entry, ok bool) {
	at := fmt.Sprintf("key %s, line %d", key, e.Line)
	err := c.checkTemplate(&e)
	if err == nil {
		e.Tags, err = c.tags(at, e.Tags)
	}
	if err != nil {
		c.report.skip("%s: %v", at, err)
	}
	return e, err == nil
}

// checkTemplate sets the defaults that the environment has, and returns an error if
// import_apprise cannot use the URL.
func (c *converter) checkTemplate(e *appriseconfig.Entry) error {
	if c.settings.noRedirects && !hasRedirect.MatchString(e.URL) {
		e.URL += map[bool]string{false: "?", true: "&"}[strings.Contains(e.URL, "?")] + "redirect=no"
	}
	v := &notifier.VariableURL{URL: e.URL, Variables: e.Template}
	v.SetDefaults(c.settings.env.templateValue)
	schemes, err := v.Schemes()
	if err != nil {
		return err
	}
	if schemes != nil && !c.settings.services.Permits(schemes) {
		return fmt.Errorf("the service of %s:// may not be used: APPRISE_ALLOW_SERVICES "+
			"or APPRISE_DENY_SERVICES forbids it, or Apprise API by default", schemes[0])
	}
	if err := v.CheckFixed(); err != nil {
		return fmt.Errorf("%w, or save the key over HTTP, see docs/saved-keys.md", err)
	}
	url, err := v.Fill(nil)
	if errors.Is(err, notifier.ErrNoValue) {
		return nil
	}
	if err == nil {
		var d *notifier.Destination
		if d, err = notifier.Parse(url, nil); err == nil {
			d.Close()
		}
	}
	return err
}

// templateFile returns a file in YAML with URLs that have variables.
func templateFile(entries []appriseconfig.Entry) (string, error) {
	var file struct {
		Version  int            `yaml:"version"`
		Template map[string]any `yaml:"template"`
		URLs     []any          `yaml:"urls"`
	}
	file.Version, file.Template = 2, map[string]any{}
	for _, e := range entries {
		for _, v := range e.Template {
			file.Template[v.Name] = v.Default
		}
		if len(e.Tags) == 0 {
			file.URLs = append(file.URLs, e.URL)
		} else {
			file.URLs = append(file.URLs, map[string]any{e.URL: map[string]any{"tag": e.Tags}})
		}
	}
	text, err := yaml.Marshal(&file)
	return string(text), err
}

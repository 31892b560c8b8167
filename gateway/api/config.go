package api

import (
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
)

// Formats of a saved configuration.
const (
	ConfigText = "text"
	ConfigYAML = "yaml"
	configAuto = "auto"
)

// Config is a configuration that a client saves under a key: notification URLs
// in one of the formats of Apprise.
type Config struct {
	Format string // ConfigText or ConfigYAML
	Text   string
}

// fieldConfig is the field of a request to save a configuration. The others are
// urls and format.
const fieldConfig = "config"

// ReadConfig reads a request to save a configuration: the field urls, a text or
// an array of texts, or the field config with the field format, which is text,
// yaml or auto. A form may leave out the format, which means auto; JSON may
// not, as in the Apprise API. If both are present, urls is used. The body of a
// plain-text request is the config. For a text of more than maxSize bytes,
// ReadConfig returns a 413 error.
func ReadConfig(w http.ResponseWriter, r *http.Request, l message.Limits, maxSize int64) (*Config, error) {
	// JSON and forms write a character with up to six bytes.
	const escaped, fields = 6, 4 << 10
	l.MaxBody, l.MaxFiles, l.Client = escaped*maxSize+fields, 0, nil
	q, err := Read(w, r, l)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	c, err := readConfig(q, sendsJSON(r))
	if err != nil {
		return nil, err
	}
	if int64(len(c.Text)) > maxSize {
		return nil, Errorf(http.StatusRequestEntityTooLarge, "the configuration is larger than %s", formatSize(maxSize))
	}
	return c, nil
}

// readConfig returns the configuration in q, which is JSON if isJSON is true.
func readConfig(q *Request, isJSON bool) (*Config, error) {
	urls, err := q.content.urls(q.limits.Client)
	if err != nil {
		return nil, err
	}
	if len(urls) > 0 {
		return &Config{Format: ConfigText, Text: strings.Join(urls, "\n") + "\n"}, nil
	}
	name := fieldConfig
	if _, ok := q.content.fields[fieldConfig]; !ok {
		name = fieldBody // of a plain text
	}
	text, err := q.content.fields[name].text(name)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		return nil, badRequest("the field urls or config is missing; set urls to notification URLs, or config to a configuration with them")
	}
	format, err := q.content.text(fieldFormat)
	if err != nil {
		return nil, err
	}
	switch format = strings.ToLower(format); {
	case format == "" && isJSON:
		return nil, badField(fieldFormat, "the field format is missing; set it to text, yaml or auto")
	case format == "", format == configAuto:
		if format = ConfigText; appriseconfig.IsYAML(text) {
			format = ConfigYAML
		}
	case format != ConfigText && format != ConfigYAML:
		return nil, badField(fieldFormat, "the field format must be text, yaml or auto")
	}
	return &Config{Format: format, Text: text}, nil
}

// PrefersJSON reports whether r is answered in JSON: if its Accept headers
// prefer JSON or, without such a header, if the request is JSON.
func PrefersJSON(r *http.Request) bool {
	if !accepts(r) {
		return sendsJSON(r)
	}
	return negotiate(r) == mediaJSON
}

// Package jsontemplate fills JSON files of the operator, with places such as
// {{app_body}}, for services that take messages in a custom JSON format.
package jsontemplate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Template is the parameter template of a service, and the values that the URL
// has for it.
type Template struct {
	file   notifier.FileParam
	values map[string]string
}

// The maximum sizes of a template and of the filled one: a client's template
// could contain the text many times.
const (
	maxTemplate = 35000
	maxFilled   = 1 << 20
)

// Describe binds the parameters.
func (t *Template) Describe(s *notifier.Schema) {
	s.File(&t.file, "template", "JSON file to send, with {{app_body}}, {{app_title}} and other places", maxTemplate).
		Web().SecretPart(secretAddress).Example("https://example.com/template.json")
	s.Map(&t.values, ":", "tokens", "value for the template, which has it as {{name}}").Example("name=value")
}

// secretAddress is a function for SecretPart. The address of a template may
// contain a password or a token, a path contains none. The host of an address is
// public: errors of connections name it.
func secretAddress(value string) (public, secret string) {
	scheme, rest, ok := strings.Cut(value, "://")
	if !ok {
		return value, ""
	}
	host, path, _ := strings.Cut(rest, "/")
	if strings.Contains(host, "@") || path == "" {
		return scheme + "://", rest
	}
	return scheme + "://" + host + "/", path
}

// Given reports whether the URL has a template.
func (t *Template) Given() bool { return t.file.Given() }

// Check returns an error if the template is not JSON, or if valid refuses it filled with an example
// message. It returns nil if the template is at an address.
func (t *Template) Check(valid func(map[string]any) error) error {
	if t.file.Content() == nil {
		return nil
	}
	example := &notifier.Message{
		Title: "title", Body: "text", Type: notifier.Info,
		Identity: &notifier.Identity{Name: "name", Description: "description", URL: "https://example.com/"},
	}
	_, err := t.fill(t.file.Content(), Values(example, "https://example.com/icon.png"), valid)
	return err
}

// Fill returns the template filled with the values. The error of valid
// continues a sentence that begins with the template, as in "has no blocks".
func (t *Template) Fill(
	ctx context.Context, c *notifier.Client, values map[string]string, valid func(map[string]any) error,
) (map[string]any, error) {
	content, err := t.file.Read(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	if len(content) > maxTemplate {
		return nil, fmt.Errorf("the template has more than %d bytes", maxTemplate)
	}
	return t.fill(content, values, valid)
}

// Values returns the values of a message. icon may be empty.
func Values(m *notifier.Message, icon string) map[string]string {
	return map[string]string{
		"app_body": m.Body, "app_title": m.Title, "app_type": string(m.Type),
		"app_id": m.Identity.Name, "app_desc": m.Identity.Description, "app_url": m.Identity.URL,
		"app_color": m.Type.Color(), "app_color_hex": m.Type.Color(), "app_color_int": strconv.Itoa(m.Type.ColorInt()),
		"app_image_url": icon,
	}
}

func (t *Template) fill(content []byte, values map[string]string, valid func(map[string]any) error) (map[string]any, error) {
	all := maps.Clone(t.values)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, values)
	filled, err := replace(string(bytes.TrimPrefix(content, []byte("\ufeff"))), all)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(filled), &out); err != nil {
		return nil, invalidJSON(filled, err)
	}
	if out == nil {
		return nil, errors.New("the template is null; it must be a JSON object")
	}
	if err := valid(out); err != nil {
		return nil, fmt.Errorf("the template %w", err)
	}
	return out, nil
}

// invalidJSON returns an error without the text, which may come from a client.
func invalidJSON(text string, err error) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		line := 1 + strings.Count(text[:min(int(e.Offset), len(text))], "\n")
		return fmt.Errorf("the template is not JSON: there is a mistake in line %d", line)
	}
	return errors.New("the template is not a JSON object")
}

var placePattern = lazyregexp.New(`\{\{\s*([^\s{}]+)\s*\}\}`)

// replace replaces the places that have a value. A value is data: within a JSON
// string it stays a part of that string, and elsewhere it is a number or becomes
// a string. Other places stay as they are.
func replace(template string, values map[string]string) (string, error) {
	var out strings.Builder
	end, inString := 0, false
	for _, at := range placePattern.FindAllStringSubmatchIndex(template, -1) {
		value, ok := lookUp(values, template[at[2]:at[3]])
		if !ok {
			continue
		}
		text := template[end:at[0]]
		inString = scanString(text, inString)
		quoted, err := json.Marshal(strings.ToValidUTF8(value, "\ufffd"))
		if err != nil {
			return "", err
		}
		switch {
		case inString:
			value = string(quoted[1 : len(quoted)-1])
		case !number.MatchString(value):
			value = string(quoted)
		}
		out.WriteString(text)
		out.WriteString(value)
		if end = at[1]; out.Len() > maxFilled {
			return "", errors.New("the template contains the text too often: filled, it is larger than 1 MiB")
		}
	}
	out.WriteString(template[end:])
	return out.String(), nil
}

// number matches a number of JSON (RFC 8259, section 6).
var number = lazyregexp.New(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// lookUp returns the value of a place. The case of its name does not count.
func lookUp(values map[string]string, name string) (string, bool) {
	if value, ok := values[name]; ok {
		return value, true
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if strings.EqualFold(key, name) {
			return values[key], true
		}
	}
	return "", false
}

// scanString reports whether the end of a piece of JSON is within a string, if
// its beginning is or is not.
func scanString(text string, inString bool) bool {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			inString = !inString
		case '\\':
			if inString {
				i++
			}
		}
	}
	return inString
}

// Objects returns an error if the field name of the template is not a list of
// objects, each of which has a text under key.
func Objects(template map[string]any, name, key string) error {
	list, _ := template[name].([]any)
	if len(list) == 0 {
		return fmt.Errorf("has no list %q with at least one item", name)
	}
	for i, item := range list {
		object, _ := item.(map[string]any)
		if _, ok := object[key].(string); object == nil || key != "" && !ok {
			return fmt.Errorf("has a mistake in %q: item %d is not an object with a text %q", name, i+1, key)
		}
	}
	return nil
}

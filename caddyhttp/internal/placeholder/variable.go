package placeholder

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Variables are values by their names, for ${NAME} in configuration files of
// Apprise. Names ignore case. Only these names have a value: nothing else of the
// environment can be read. Without variables, ${NAME} is a text like any other.
type Variables struct {
	values map[string]string // by the name in lower case
	names  []string          // as they were declared, sorted
}

var (
	variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	variable     = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// CheckVariable returns an error if a variable cannot have the name or the value.
func CheckVariable(name, value string) error {
	if !variableName.MatchString(name) {
		return errors.New("the name of a variable must be 1 to 64 letters, digits and _, and must not begin with a digit")
	}
	if value == "" {
		return fmt.Errorf("the variable %s is empty; give it a value, as in %s={env.%[1]s}", name, name)
	}
	if err := Check(value); err != nil {
		return fmt.Errorf("the variable %s: %w", name, err)
	}
	return nil
}

// NewVariables returns variables whose values have their placeholders replaced.
func NewVariables(values map[string]string) (*Variables, error) {
	if len(values) == 0 {
		return nil, nil
	}
	v := &Variables{values: map[string]string{}, names: slices.Sorted(maps.Keys(values))}
	for _, name := range v.names {
		if err := CheckVariable(name, values[name]); err != nil {
			return nil, err
		}
		value, err := Resolve(values[name])
		if err != nil {
			return nil, fmt.Errorf("the variable %s: %w", name, err)
		}
		key := strings.ToLower(name)
		if _, ok := v.values[key]; ok {
			return nil, fmt.Errorf("the variable %s occurs twice, because names ignore case; remove one", name)
		}
		if v.values[key] = strings.TrimSpace(value); v.values[key] == "" {
			return nil, fmt.Errorf("the variable %s is empty; give it a value", name)
		}
	}
	return v, nil
}

// IsVariable reports whether a URL is one variable and nothing else.
func (v *Variables) IsVariable(url string) bool {
	return v != nil && variable.FindString(url) == url && url != ""
}

// Has reports whether a URL has a variable that its template does not declare.
func (v *Variables) Has(url string, declared ...notifier.Variable) bool {
	return v != nil && slices.ContainsFunc(variable.FindAllStringSubmatch(url, -1), func(m []string) bool {
		return !isDeclared(m[1], declared)
	})
}

func isDeclared(name string, declared []notifier.Variable) bool {
	return slices.ContainsFunc(declared, func(d notifier.Variable) bool { return strings.EqualFold(d.Name, name) })
}

// Value returns the value of a variable. v may be nil.
func (v *Variables) Value(name string) (value string, ok bool) {
	if v != nil {
		value, ok = v.values[strings.ToLower(name)]
	}
	return value, ok
}

// Expand replaces the variables in a URL, as ResolveURL replaces placeholders, except the ones that
// its template declares.
func (v *Variables) Expand(url string, declared ...notifier.Variable) (string, error) {
	if !v.Has(url, declared...) {
		return url, nil
	}
	url = strings.TrimSpace(url)
	isOne := func(begin int) bool { return !isDeclared(variable.FindStringSubmatch(url[begin:])[1], declared) }
	url, err := substitute(url, variable, isOne, v.value, strings.NewReplacer())
	if err != nil {
		return "", err
	}
	return url, CheckURL(url)
}

func (v *Variables) value(name string) (label, value string, err error) {
	value, ok := v.values[strings.ToLower(name)]
	if !ok {
		return "", "", fmt.Errorf("the variable ${%s} is unknown; there are %s; write %%24 for a dollar sign that begins none",
			name, strings.Join(v.names, ", "))
	}
	return "${" + name + "}", value, nil
}

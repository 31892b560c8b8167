package view

import (
	"strings"
	"unicode"
)

// Named is a destination under the name that people use.
type Named struct {
	Name  string // the service and a distinguishing part, such as "Slack #ops"
	Group string // group of the service, for the colour of its letter
}

// Mark returns the letter that stands for the service.
func (n Named) Mark() string { return letterOf(n.Name) }

// letterOf returns the first letter or digit of the name of a service, in upper case.
func letterOf(name string) string {
	for _, r := range name {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return strings.ToUpper(string(r))
		}
	}
	return "?"
}

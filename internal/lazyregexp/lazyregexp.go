// Package lazyregexp has regular expressions that are compiled when they are
// first used. A program with hundreds of them starts sooner and needs less
// memory, because it uses few.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a [regexp.Regexp] that is compiled when it is first used.
type Regexp struct {
	text     string
	once     sync.Once
	compiled *regexp.Regexp
}

// New returns the regular expression that text describes. The first use of it
// panics if text is invalid. A test compiles the texts of all calls in this
// module.
func New(text string) *Regexp { return &Regexp{text: text} }

func (r *Regexp) re() *regexp.Regexp {
	r.once.Do(func() { r.compiled = regexp.MustCompile(r.text) })
	return r.compiled
}

// Match is [regexp.Regexp.Match].
func (r *Regexp) Match(b []byte) bool { return r.re().Match(b) }

// MatchString is [regexp.Regexp.MatchString].
func (r *Regexp) MatchString(s string) bool { return r.re().MatchString(s) }

// FindString is [regexp.Regexp.FindString].
func (r *Regexp) FindString(s string) string { return r.re().FindString(s) }

// FindStringIndex is [regexp.Regexp.FindStringIndex].
func (r *Regexp) FindStringIndex(s string) []int { return r.re().FindStringIndex(s) }

// FindStringSubmatch is [regexp.Regexp.FindStringSubmatch].
func (r *Regexp) FindStringSubmatch(s string) []string { return r.re().FindStringSubmatch(s) }

// FindAllString is [regexp.Regexp.FindAllString].
func (r *Regexp) FindAllString(s string, n int) []string { return r.re().FindAllString(s, n) }

// FindAllStringSubmatch is [regexp.Regexp.FindAllStringSubmatch].
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.re().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is [regexp.Regexp.FindAllStringSubmatchIndex].
func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.re().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAll is [regexp.Regexp.ReplaceAll].
func (r *Regexp) ReplaceAll(src, with []byte) []byte { return r.re().ReplaceAll(src, with) }

// ReplaceAllFunc is [regexp.Regexp.ReplaceAllFunc].
func (r *Regexp) ReplaceAllFunc(src []byte, f func([]byte) []byte) []byte {
	return r.re().ReplaceAllFunc(src, f)
}

// ReplaceAllString is [regexp.Regexp.ReplaceAllString].
func (r *Regexp) ReplaceAllString(src, with string) string {
	return r.re().ReplaceAllString(src, with)
}

// ReplaceAllStringFunc is [regexp.Regexp.ReplaceAllStringFunc].
func (r *Regexp) ReplaceAllStringFunc(src string, f func(string) string) string {
	return r.re().ReplaceAllStringFunc(src, f)
}

// SubexpNames is [regexp.Regexp.SubexpNames].
func (r *Regexp) SubexpNames() []string { return r.re().SubexpNames() }

package mail

import (
	"fmt"
	"strings"
	"testing"
)

// TestParameters reads fields with mistakes that no mail of testdata has.
func TestParameters(t *testing.T) {
	for field, want := range map[string]string{
		"":                                     ` map[]`,
		"Text/HTML":                            `text/html map[]`,
		"text/html;charset=UTF-8":              `text/html map[charset:UTF-8]`,
		"a/b; x; ; =y; Z = z":                  `a/b map[:y z:z]`,
		`a/b; n="a\"b\\c"; m=`:                 `a/b map[m: n:a"b\c]`,
		`a/b; n="a";m="b`:                      `a/b map[m:b n:a]`,
		`a/b; n="a; m="b"`:                     `a/b map[n:a; m="b]`,
		`a/b; n=1; n=2`:                        `a/b map[n:1]`,
		`a/b; n=1; n*=utf-8''%C3%A4`:           `a/b map[n:ä]`,
		`a/b; n*=utf-8''; n=1`:                 `a/b map[n:1]`,
		`a/b; n*=%C3%A4`:                       `a/b map[n:ä]`,
		`a/b; n*=''%E4`:                        `a/b map[n:ä]`,
		`a/b; n*1=b; n*0=a; n*7=c; n*x=d`:      `a/b map[n:abc]`,
		`a/b; n*0*=utf-8''%C3; n*1*=%A4`:       `a/b map[n:ä]`,
		`a/b; n*0*=utf-7''+AOQ; n*1=-; n*2*=%`: `a/b map[n:ä%]`,
	} {
		value, params := ParseParameters(field)
		if got := fmt.Sprint(value, " ", params); got != want {
			t.Errorf("%s: got %s, want %s", field, got, want)
		}
	}
}

// TestParametersCost reads a field in which the end of a quote could be searched for
// many times.
func TestParametersCost(t *testing.T) {
	if _, params := ParseParameters("a/b; " + strings.Repeat(`n="x;`, maxHeader/5)); params["n"] != "x" {
		t.Errorf("got %.100v", params)
	}
}

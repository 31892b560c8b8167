// Package inline joins the names of destinations for a line of a page.
package inline

import (
	"strconv"
	"strings"
)

// maxNames is the maximum number of destinations named in a line.
const maxNames = 8

// Names returns names in one line. Equal names have a count.
func Names(all []string) string {
	count := map[string]int{}
	var names []string
	for _, name := range all {
		if count[name]++; count[name] == 1 {
			names = append(names, name)
		}
	}
	more := 0
	for _, name := range names[min(len(names), maxNames):] {
		more += count[name]
	}
	names = names[:min(len(names), maxNames)]
	for i, name := range names {
		if n := count[name]; n > 1 {
			names[i] = strconv.Itoa(n) + " × " + name
		}
	}
	out := strings.Join(names, ", ")
	if more > 0 {
		out += " and " + strconv.Itoa(more) + " more"
	}
	return out
}

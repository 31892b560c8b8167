// Package jsontest names the fields of types in JSON, for tests that hold fixtures
// and documents to settings.
package jsontest

import (
	"reflect"
	"strings"
)

// Fields returns the JSON names of the fields of a type and of nested types.
func Fields(t reflect.Type) (names []string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return Fields(t.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported():
		case f.Anonymous:
			names = append(names, Fields(f.Type)...)
		case name != "" && name != "-":
			names = append(append(names, name), Fields(f.Type)...)
		}
	}
	return names
}

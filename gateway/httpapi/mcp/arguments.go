package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// arguments are the arguments of a tool.
type arguments struct {
	names    []string // in the order of its schema
	required []string
	text     string // the argument that people read; either of texts is accepted for it
}

// texts are the arguments that people read. Agents confuse them.
var texts = []string{"body", "question"}

var argumentsOf = map[string]arguments{
	"notify":  argumentsIn[message]("body"),
	"ask":     argumentsIn[question]("question"),
	"answer":  argumentsIn[answerArguments](""),
	"resolve": argumentsIn[resolution]("body"),
}

// argumentsIn returns arguments named after the fields of T.
func argumentsIn[T any](text string) arguments {
	a := arguments{text: text}
	for f := range reflect.TypeFor[T]().Fields() {
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if a.names = append(a.names, name); rest == "" {
			a.required = append(a.required, name)
		}
	}
	return a
}

// checkArguments corrects the names of a call's arguments, and refuses unknown arguments.
func checkArguments(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		if call, ok := r.(*sdk.CallToolRequest); ok {
			if tool, ok := argumentsOf[call.Params.Name]; ok {
				var err error
				if call.Params.Arguments, err = tool.correct(call.Params.Name, call.Params.Arguments); err != nil {
					var out sdk.CallToolResult
					out.SetError(err)
					return &out, nil
				}
			}
		}
		return next(ctx, method, r)
	}
}

// correct returns the arguments of a call under the tool's names, or an error that lists these
// names.
func (a *arguments) correct(tool string, data json.RawMessage) (json.RawMessage, error) {
	given := map[string]json.RawMessage{}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &given); err != nil {
			return nil, fmt.Errorf("the arguments must be an object; %s takes %s", tool, strings.Join(a.names, ", "))
		}
	}
	changed := false
	for _, name := range texts {
		value, ok := given[name]
		if _, both := given[a.text]; ok && !both && a.text != "" {
			delete(given, name)
			given[a.text], changed = value, true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(a.names, name) {
			return nil, fmt.Errorf("unknown argument %.40q; %s takes %s", name, tool, strings.Join(a.names, ", "))
		}
	}
	for _, name := range a.required {
		if _, ok := given[name]; !ok {
			return nil, fmt.Errorf("the argument %s is missing; %s takes %s", name, tool, strings.Join(a.names, ", "))
		}
	}
	if !changed {
		return data, nil
	}
	return json.Marshal(given)
}

package api

import (
	"encoding/json"
	"strconv"
)

// AppendJSON appends r as JSON, as [json.Marshal] would, without reflection.
func (r *Result) AppendJSON(b []byte) []byte {
	b = appendString(append(b, `{"service":`...), r.Service)
	b = appendString(append(b, `,"destination":`...), r.Destination)
	b = append(b, `,"tags":`...)
	if r.Tags == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, '[')
		for i, tag := range r.Tags {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, tag)
		}
		b = append(b, ']')
	}
	b = appendString(append(b, `,"status":`...), string(r.Status))
	b = strconv.AppendInt(append(b, `,"attempts":`...), int64(r.Attempts), 10)
	b = strconv.AppendInt(append(b, `,"elapsed_ms":`...), r.ElapsedMS, 10)
	b = append(b, `,"error":`...)
	if r.Error == nil {
		b = append(b, "null"...)
	} else {
		b = appendString(b, *r.Error)
	}
	if r.Optional {
		b = append(b, `,"optional":true`...)
	}
	return append(b, '}')
}

// appendString appends s as a JSON string.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

package site

import "errors"

var ErrEmptyTag = errors.New("it names no tag; write a tag expression, such as ops,dev")

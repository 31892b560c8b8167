package notifier

import (
	"fmt"
	"reflect"
	"unsafe"
)

// A variable is the place of a bound variable in the value of a service, or in
// options. Describe binds the fields of one value of the service; in every other
// value the same field has the same offset. So a destination needs no list of
// its variables.
type variable struct {
	offset uintptr
	common bool // in options, and not in the service
}

// A binder finds the places of the variables that Describe binds.
type binder struct {
	service reflect.Value // the value that Describe runs for
	options reflect.Value
}

func newBinder(svc Service, o *options) *binder {
	return &binder{reflect.ValueOf(svc).Elem(), reflect.ValueOf(o).Elem()}
}

// bind returns the place of v. It panics if v is not a field of the
// service.
func (s *Schema) bind(v unsafe.Pointer) variable {
	if s.binder == nil {
		panic(s.Name + ": parameters can be declared in Describe only")
	}
	for _, in := range []struct {
		value  reflect.Value
		common bool
	}{{s.binder.service, false}, {s.binder.options, true}} {
		offset := uintptr(v) - in.value.UnsafeAddr()
		if offset < in.value.Type().Size() { // it wraps around if v is below
			return variable{offset, in.common}
		}
	}
	panic(fmt.Sprintf("%s: Describe binds a variable that is not a field of %s", s.Name, s.binder.service.Type()))
}

// at returns a pointer to a bound variable of d.
func (d *Destination) at(v variable) unsafe.Pointer {
	if v.common {
		return unsafe.Add(unsafe.Pointer(d.options), v.offset)
	}
	return unsafe.Add(reflect.ValueOf(d.service).UnsafePointer(), v.offset)
}

// change returns a pointer to a bound variable of d that is about to be changed.
// Until then, d has the options of its entry.
func (d *Destination) change(v variable) unsafe.Pointer {
	if v.common && d.options == d.entry.options {
		d.options = new(*d.options)
	}
	return d.at(v)
}

// server returns the server of d, or nil if its service has none.
func (d *Destination) server() *Server {
	if v := d.schema.server; v != nil {
		return (*Server)(d.at(*v))
	}
	return nil
}

// slash returns the variable of [Schema.TrailingSlash], or nil if there is none.
func (d *Destination) slash() *bool {
	if v := d.schema.slash; v != nil {
		return (*bool)(d.at(*v))
	}
	return nil
}

// copyOf returns a new value of a service with the fields of svc.
func copyOf(svc Service) Service {
	from := reflect.ValueOf(svc).Elem()
	to := reflect.New(from.Type())
	to.Elem().Set(from)
	return to.Interface().(Service)
}

package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// errNoRequest refuses a body that is not a ConversionReview.
var errNoRequest = errors.New("there is no request")

// review reads a ConversionReview value by value. The API server writes the uid and the version before the objects,
// in the order in which the fields are declared. A client that does not is refused, because its objects would have to
// be buffered.
type review struct {
	body    *meter
	decoder *json.Decoder
	uid     string
	version string
}

func newReview(body *meter) *review {
	return &review{body: body, decoder: json.NewDecoder(body)}
}

// each passes the objects one by one. The bytes are valid until object returns.
func (r *review) each(object func(json.RawMessage) error) error {
	found := false
	err := r.fields(func(name string) error {
		if name != "request" {
			return r.skip()
		}
		if found {
			return errors.New("there are two requests")
		}
		found = true
		return r.request(object)
	})
	if err == nil && !found {
		err = errNoRequest
	}
	return err
}

func (r *review) request(object func(json.RawMessage) error) error {
	return r.fields(func(name string) error {
		switch name {
		case "uid":
			return r.text(&r.uid)
		case "desiredAPIVersion":
			return r.text(&r.version)
		case "objects":
			return r.objects(object)
		}
		return r.skip()
	})
}

func (r *review) objects(object func(json.RawMessage) error) error {
	start, err := r.token()
	if err != nil || start == nil {
		return err // null means no objects
	}
	if start != json.Delim('[') {
		return fmt.Errorf("objects are %v, want a list", start)
	}
	for r.more() {
		if r.uid == "" || r.version == "" {
			return errors.New("objects come before uid and desiredAPIVersion, or these are empty")
		}
		var raw json.RawMessage
		if err := r.value(&raw); err != nil {
			return err
		}
		if err := object(raw); err != nil {
			return err
		}
	}
	_, err = r.token()
	return err
}

// fields calls field with the name of each field of the next object. field has to read the value.
func (r *review) fields(field func(name string) error) error {
	start, err := r.token()
	if err != nil {
		return err
	}
	if start != json.Delim('{') {
		return errNoRequest
	}
	for r.more() {
		name, err := r.token()
		if err != nil {
			return err
		}
		text, _ := name.(string) // the decoder guarantees that it is a string
		if err := field(text); err != nil {
			return err
		}
	}
	_, err = r.token()
	return err
}

// more reports whether another element or field follows.
func (r *review) more() bool {
	r.body.next()
	return r.decoder.More()
}

func (r *review) token() (json.Token, error) {
	r.body.next()
	token, err := r.decoder.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return token, err
}

func (r *review) value(to any) error {
	r.body.next()
	return r.decoder.Decode(to)
}

func (r *review) skip() error {
	var ignored json.RawMessage
	return r.value(&ignored)
}

// text reads a short string.
func (r *review) text(to *string) error {
	if err := r.value(to); err != nil {
		return err
	}
	if len(*to) > longestText {
		return &tooLongError{fmt.Sprintf("a field of the request has %d bytes, want at most %d", len(*to), longestText)}
	}
	return nil
}

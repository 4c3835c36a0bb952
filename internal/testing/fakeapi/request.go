package fakeapi

import (
	"io"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

const protobufType = "application/vnd.kubernetes.protobuf"

// request is a request for objects of a kind.
type request struct {
	*http.Request
	*Server
	shelf                *shelf
	namespace, name, sub string
}

func (q request) verb() string {
	switch query := q.URL.Query(); {
	case q.Method == http.MethodGet && (query.Get("watch") == "true" || query.Get("watch") == "1"):
		return "watch"
	case q.Method == http.MethodGet && q.name == "":
		return "list"
	case q.Method == http.MethodDelete && q.name == "":
		return "deletecollection"
	}
	return map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
		http.MethodDelete: "delete"}[q.Method]
}

// answer answers the request, unless a fault does, and counts it.
func (q request) answer(w http.ResponseWriter) {
	verb := q.verb()
	call := Call{Client: strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer "), Verb: verb, Resource: q.shelf.kind.resource,
		Subresource: q.sub}
	if err := q.faults.strike(q.Context(), verb, q.shelf.kind.resource); err != nil {
		q.counts.add(call, true)
		refuse(w, err)
		return
	}
	q.counts.add(call, false)
	switch verb {
	case "watch":
		q.watch(w)
	case "list":
		q.list(w)
	default:
		r, err := q.single(verb)
		if err != nil {
			refuse(w, err)
			return
		}
		q.reply(w, verb, r)
	}
}

// single reads or changes one object.
func (q request) single(verb string) (ref, error) {
	if verb == "get" {
		q.mutex.RLock()
		defer q.mutex.RUnlock()
		return q.found()
	}
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return ref{}, err
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	switch verb {
	case "create":
		return q.create(body)
	case "update":
		return q.update(body)
	case "patch":
		return q.patch(body)
	case "delete":
		return q.delete(body)
	}
	return ref{}, apierrors.NewMethodNotSupported(q.shelf.kind.groupResource(), verb)
}

func (q request) key() string { return keyOf(q.namespace, q.name) }

// found returns the object of the request, or NotFound.
func (q request) found() (ref, error) {
	r := q.shelf.get(q.key())
	if r.object == nil {
		return r, apierrors.NewNotFound(q.shelf.kind.groupResource(), q.name)
	}
	return r, nil
}

// stored is found with the content of the object.
func (q request) stored() (ref, *unstructured.Unstructured, error) {
	r, err := q.found()
	if err != nil {
		return r, nil, err
	}
	content, err := r.whole()
	return r, content, err
}

// reply writes one object.
func (q request) reply(w http.ResponseWriter, verb string, r ref) {
	code := http.StatusOK
	if verb == "create" {
		code = http.StatusCreated
	}
	if r.object == nil {
		answer(w, code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
		return
	}
	f := q.form()
	item := r.append(nil, f)
	if !f.protobuf {
		w.Header().Set("Content-Type", "application/json")
	} else {
		item = append(envelope(r.kind, f, "", len(item)), item...)
		w.Header().Set("Content-Type", protobufType)
	}
	w.WriteHeader(code)
	_, _ = w.Write(item)
}

// form returns the first form that the client accepts and the kind has.
func (q request) form() form {
	for accepted := range strings.SplitSeq(q.Header.Get("Accept"), ",") {
		name, parameters, err := mime.ParseMediaType(strings.TrimSpace(accepted))
		if err != nil {
			continue
		}
		as := parameters["as"]
		f := form{metadata: strings.HasPrefix(as, "PartialObjectMetadata"), protobuf: name == protobufType}
		switch {
		case as != "" && !f.metadata: // tables
		case f.protobuf && (f.metadata || !q.shelf.kind.custom), name == "application/json", name == "*/*":
			return f
		}
	}
	return form{}
}

// selector reads the selectors of the query.
func (q request) selector() (s selector, err error) {
	query := q.URL.Query()
	if s.labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	if s.fields, err = fields.ParseSelector(query.Get("fieldSelector")); err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	if q.name != "" {
		s.fields = fields.AndSelectors(s.fields, fields.OneTermEqualSelector("metadata.name", q.name))
	}
	return s, nil
}

// typed converts the content to a type of the API.
func typed(content *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content.Object, into)
}

package fakeapi

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// compressed is the size from which kube-apiserver compresses a list, in bytes
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#response-compression).
const compressed = 128 << 10

// list answers a list, or a page of it.
func (q request) list(w http.ResponseWriter) {
	query := q.URL.Query()
	of, err := q.selector()
	if err != nil {
		refuse(w, err)
		return
	}
	limit, _ := strconv.Atoi(query.Get("limit"))
	from, at, err := readToken(query.Get("continue"))
	if err != nil {
		refuse(w, err)
		return
	}
	q.mutex.RLock()
	if from != (position{}) && at < q.shelf.since {
		q.mutex.RUnlock()
		refuse(w, apierrors.NewResourceExpired("the continue token is too old"))
		return
	}
	found, next, more := q.shelf.page(from, limit, in(q.namespace, of))
	count, meta := q.shelf.count, metav1.ListMeta{ResourceVersion: fmt.Sprint(q.version)}
	if from != (position{}) {
		meta.ResourceVersion = fmt.Sprint(at)
	}
	q.mutex.RUnlock()
	if more {
		meta.Continue = fmt.Sprintf("%s %d %s", meta.ResourceVersion, next.number, next.key)
		if of.empty() && q.namespace == "" {
			rest := int64(count - len(found) - int(from.number)) // those that are gone before the page are few
			meta.RemainingItemCount = &rest
		}
	}
	q.send(w, found, meta)
}

// readToken reads where a page begins, and the version of the first one.
func readToken(token string) (from position, at uint64, err error) {
	if token == "" {
		return position{}, 0, nil
	}
	parts := strings.SplitN(token, " ", 3)
	if len(parts) == 3 {
		number, notNumber := strconv.ParseUint(parts[1], 10, 32)
		version, notVersion := strconv.ParseUint(parts[0], 10, 64)
		if notNumber == nil && notVersion == nil {
			return position{uint32(number), parts[2]}, version, nil
		}
	}
	return position{}, 0, apierrors.NewBadRequest("the continue token is invalid")
}

// send writes a list, compressed where kube-apiserver compresses it.
func (q request) send(w http.ResponseWriter, found []ref, meta metav1.ListMeta) {
	f, size := q.form(), 0
	for _, r := range found {
		size += r.size(f)
	}
	w.Header().Set("Content-Type", "application/json")
	if f.protobuf {
		w.Header().Set("Content-Type", protobufType)
	}
	var to io.Writer = w
	if size > compressed && strings.Contains(q.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		zipped, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		defer zipped.Close()
		to = zipped
	}
	out := bufio.NewWriterSize(to, 256<<10)
	defer out.Flush()
	if f.protobuf {
		writeProtobuf(out, q.shelf.kind, f, listed{found, meta})
		return
	}
	writeJSON(out, q.shelf.kind, f, listed{found, meta})
}

type listed struct {
	found []ref
	meta  metav1.ListMeta
}

// writeProtobuf writes a list: its metadata is field 1 of the message and its items are field 2, in all kinds.
func writeProtobuf(out *bufio.Writer, k *kind, f form, list listed) {
	head, _ := list.meta.Marshal()
	length := len(tag(nil, 1, len(head))) + len(head)
	var number [binary.MaxVarintLen64]byte
	for _, r := range list.found {
		size := r.size(f)
		length += 1 + binary.PutUvarint(number[:], uint64(size)) + size
	}
	_, _ = out.Write(envelope(k, f, "List", length))
	_, _ = out.Write(append(tag(nil, 1, len(head)), head...))
	var item []byte
	for _, r := range list.found {
		item = r.append(tag(item[:0], 2, r.size(f)), f)
		_, _ = out.Write(item)
	}
}

func writeJSON(out *bufio.Writer, k *kind, f form, list listed) {
	apiVersion, name := f.named(k, "List")
	head, _ := json.Marshal(list.meta)
	fmt.Fprintf(out, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, name, apiVersion, head)
	var item []byte
	for i, r := range list.found {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		item = r.append(item[:0], f)
		_, _ = out.Write(item)
	}
	_, _ = out.WriteString("]}\n")
}

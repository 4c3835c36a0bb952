package wire

import (
	"bytes"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Pods returns a reader of all pods that cuts them. Lists are read as always.
func Pods(config *rest.Config) (*cache.ListWatch, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	if config.ContentType == "" {
		config.ContentType = runtime.ContentTypeProtobuf
	}
	config.NegotiatedSerializer = serializer{scheme.Codecs.WithoutConversion()}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return cache.NewListWatchFromClient(client, "pods", metav1.NamespaceAll, fields.Everything()), nil
}

// serializer cuts pods in protobuf, and leaves everything else to the serializer that it wraps.
type serializer struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s serializer) SupportedMediaTypes() []runtime.SerializerInfo {
	all := s.NegotiatedSerializer.SupportedMediaTypes()
	for i := range all {
		if all[i].MediaType == runtime.ContentTypeProtobuf && all[i].StreamSerializer != nil {
			stream := *all[i].StreamSerializer
			stream.Serializer = eventDecoder{stream.Serializer}
			all[i].StreamSerializer = &stream
		}
	}
	return all
}

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (s serializer) DecoderToVersion(of runtime.Decoder, to runtime.GroupVersioner) runtime.Decoder {
	return podDecoder{s.NegotiatedSerializer.DecoderToVersion(of, to)}
}

// eventDecoder decodes events of watches. Their objects stay in the buffer of the stream, until the next event.
type eventDecoder struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (d eventDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object,
	*schema.GroupVersionKind, error) {
	if event, ok := into.(*metav1.WatchEvent); ok && readEvent(data, event) {
		return event, defaults, nil
	}
	return d.Serializer.Decode(data, defaults, into)
}

// readEvent reads a WatchEvent in protobuf. It returns false for anything else.
func readEvent(data []byte, event *metav1.WatchEvent) bool {
	kind, fine := field(data, 1)
	object, alsoFine := field(data, 2)
	raw, finally := field(object, 1)
	if !fine || !alsoFine || !finally {
		return false
	}
	event.Type, event.Object.Raw = string(kind), raw
	return true
}

// field returns the bytes of the field with a number of a message, false if it is not there once.
func field(data []byte, wanted protowire.Number) (value []byte, found bool) {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil, false
		}
		size := protowire.ConsumeFieldValue(number, kind, data[n:])
		if size < 0 {
			return nil, false
		}
		if number == wanted {
			if found || kind != protowire.BytesType {
				return nil, false
			}
			value, _ = protowire.ConsumeBytes(data[n:])
			found = true
		}
		data = data[n+size:]
	}
	return value, found
}

// podDecoder cuts and decodes pods.
type podDecoder struct{ runtime.Decoder }

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Decode implements runtime.Decoder.
func (d podDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object,
	*schema.GroupVersionKind, error) {
	if raw, is := podIn(data); is && into == nil {
		buffer := buffers.Get().(*[]byte)
		defer buffers.Put(buffer)
		object, whole := &corev1.Pod{}, false
		if *buffer, whole = pod.cut((*buffer)[:0], raw); whole && object.Unmarshal(*buffer) == nil {
			kind := corev1.SchemeGroupVersion.WithKind("Pod")
			return object, &kind, nil
		}
	}
	return d.Decoder.Decode(data, defaults, into)
}

// prefix is that of all objects that Kubernetes encodes in protobuf; typePod that of the type of a pod in what follows it.
var prefix, typePod = []byte("k8s\x00"), []byte("\x0a\x02v1\x12\x03Pod")

// podIn returns the bytes of the pod in an encoded object, false if it is something else.
func podIn(data []byte) ([]byte, bool) {
	rest, is := bytes.CutPrefix(data, prefix)
	if !is {
		return nil, false
	}
	of, typed := field(rest, 1)
	raw, fine := field(rest, 2)
	encoding, _ := field(rest, 3)
	return raw, typed && fine && bytes.Equal(of, typePod) && len(encoding) == 0
}

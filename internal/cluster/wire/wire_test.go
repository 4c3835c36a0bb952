package wire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"
	"sigs.k8s.io/randfill"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

var alike = cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(metav1.FieldsV1{}),
	cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })}

// filled returns a pod with randomly filled fields.
func filled(seed int64) *corev1.Pod {
	pod := &corev1.Pod{}
	random := randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(int64(c.Intn(5000)), resource.DecimalSI)
		},
		func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(int64(c.Uint32()), 0) },
		func(f *metav1.FieldsV1, _ randfill.Continue) {
			*f = *metav1.NewFieldsV1(`{"f:status":{"f:nominatedNodeName":{}}}`)
		},
	)
	random.Fill(pod)
	pod.TypeMeta = metav1.TypeMeta{}
	for i := range pod.ManagedFields {
		switch e := &pod.ManagedFields[i]; (int(seed) + i) % 4 {
		case 0:
			e.Manager, e.Subresource = convert.NominationManager, "status"
		case 1:
			e.Subresource = "resize"
		}
	}
	if seed%3 == 0 {
		pod.Spec.NodeName = ""
	}
	return pod
}

// TestCut checks that pods that were cut are trimmed to the same pods as whole ones, and that much is cut out.
func TestCut(t *testing.T) {
	var before, after, nominated, resized int
	for seed := range int64(400) {
		data, err := filled(seed).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		short, fine := pod.cut(nil, data)
		if !fine {
			t.Fatalf("seed %d: not cut", seed)
		}
		want, got := &corev1.Pod{}, &corev1.Pod{}
		if err := want.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		if err := got.Unmarshal(short); err != nil {
			t.Fatalf("seed %d: what is left cannot be decoded: %v", seed, err)
		}
		before, after = before+len(data), after+len(short)
		convert.Trim(want)
		convert.Trim(got)
		if diff := cmp.Diff(want, got, alike); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
		if convert.NominatedByUs(got) {
			nominated++
		}
		if convert.Resized(got) {
			resized++
		}
	}
	t.Logf("%d of %d bytes are left", after, before)
	if after > before/2 || nominated == 0 || resized == 0 {
		t.Errorf("%d of %d bytes are left; %d nominated, %d resized; want less than half, some and some", after, before, nominated, resized)
	}
}

// FuzzCut checks that no bytes stop the decoder: they are cut, or left to the whole decoder.
func FuzzCut(f *testing.F) {
	for seed := range int64(5) {
		data, err := filled(seed).Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("\x0a\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		short, fine := pod.cut(nil, data)
		want, got := &corev1.Pod{}, &corev1.Pod{}
		if want.Unmarshal(data) != nil || !fine {
			return // decoded, or refused, as always
		}
		if len(short) > len(data) {
			t.Fatalf("%d bytes have become %d", len(data), len(short))
		}
		if got.Unmarshal(short) != nil {
			return // decoded as always
		}
		convert.Trim(want)
		convert.Trim(got)
		if diff := cmp.Diff(want, got, alike, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestDecode decodes events and lists of all kinds in both encodings as a client does.
func TestDecode(t *testing.T) {
	ours, theirs := serializer{scheme.Codecs.WithoutConversion()}, scheme.Codecs.WithoutConversion()
	objects := []runtime.Object{
		filled(1), filled(2), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}, &metav1.Status{Reason: "Expired", Code: 410},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, &corev1.PodList{Items: []corev1.Pod{*filled(3)}},
	}
	for _, mediaType := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		for i, object := range objects {
			t.Run(fmt.Sprint(mediaType, i), func(t *testing.T) {
				stream := encoded(t, mediaType, object)
				want, wantType := decoded(t, theirs, mediaType, stream)
				got, gotType := decoded(t, ours, mediaType, stream)
				for _, o := range []runtime.Object{want, got} {
					if pod, is := o.(*corev1.Pod); is {
						convert.Trim(pod)
					}
				}
				if diff := cmp.Diff(want, got, alike); diff != "" || wantType != gotType {
					t.Errorf("event %s, want %s (-want +got):\n%s", gotType, wantType, diff)
				}
			})
		}
	}
}

// encoded returns a watch's stream of one event with the object.
func encoded(t *testing.T, mediaType string, object runtime.Object) []byte {
	t.Helper()
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	raw, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), object)
	if err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	frames := info.StreamSerializer.Framer.NewFrameWriter(&stream)
	event := &metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: raw}}
	if err := streaming.NewEncoder(frames, info.StreamSerializer.Serializer).Encode(event); err != nil {
		t.Fatal(err)
	}
	return stream.Bytes()
}

// decoded returns the object of the one event of a stream.
func decoded(t *testing.T, of runtime.NegotiatedSerializer, mediaType string, stream []byte) (runtime.Object, string) {
	t.Helper()
	negotiator := runtime.NewClientNegotiator(of, corev1.SchemeGroupVersion)
	decoder, events, framer, err := negotiator.StreamDecoder(mediaType, nil)
	if err != nil {
		t.Fatal(err)
	}
	reader := framer.NewFrameReader(readCloser{strings.NewReader(string(stream))})
	kind, object, err := restwatch.NewDecoder(streaming.NewDecoder(reader, events), decoder).Decode()
	if err != nil {
		t.Fatal(err)
	}
	return object, string(kind)
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// BenchmarkDecode compares what it takes to decode and trim a pod.
func BenchmarkDecode(b *testing.B) {
	object := filled(8)
	raw, err := runtime.Encode(scheme.Codecs.EncoderForVersion(mustProtobuf().Serializer, corev1.SchemeGroupVersion), object)
	if err != nil {
		b.Fatal(err)
	}
	for name, of := range map[string]runtime.NegotiatedSerializer{"cut": serializer{scheme.Codecs.WithoutConversion()},
		"whole": scheme.Codecs.WithoutConversion()} {
		decoder := of.DecoderToVersion(mustProtobuf().Serializer, corev1.SchemeGroupVersion)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				o, err := runtime.Decode(decoder, raw)
				if err != nil {
					b.Fatal(err)
				}
				convert.Trim(o.(*corev1.Pod))
			}
		})
	}
}

func mustProtobuf() runtime.SerializerInfo {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	return info
}

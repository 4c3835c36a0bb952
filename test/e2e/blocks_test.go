package e2e

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/testing/fakeapi"
)

// ours is the namespace of the objects that exist once in a sample.
const ours = "loaded"

// readSample reads the objects of a cluster that belong to the sample.
func readSample(ctx context.Context, r *registry) (*fakeapi.Sample, error) {
	w, first := &fakeapi.Sample{}, fmt.Sprintf(fakeapi.Namespace, 0)
	for _, part := range []struct {
		of     *[]fakeapi.Stored
		prefix string
		names  *[]string
	}{
		{&w.Once, "/registry/karpenter.kwok.sh/kwoknodeclasses/", nil},
		{&w.Once, "/registry/karpenter.sh/nodepools/", nil},
		{&w.Once, "/registry/namespaces/" + ours, nil},
		{&w.Once, "/registry/daemonsets/" + ours + "/", nil},
		{&w.Each, "/registry/namespaces/" + first, nil},
		{&w.Each, "/registry/karpenter.sh/nodeclaims/", &w.Claims},
		{&w.Each, "/registry/configmaps/kube-system/kwok-machine-", nil},
		{&w.Each, "/registry/minions/", &w.Nodes},
		{&w.Each, "/registry/deployments/" + first + "/", nil},
		{&w.Each, "/registry/replicasets/" + first + "/", nil},
		{&w.Each, "/registry/poddisruptionbudgets/" + first + "/", nil},
		{&w.Each, "/registry/pods/" + first + "/", &w.Pods},
		{&w.Each, "/registry/pods/" + ours + "/", &w.DaemonPods},
	} {
		objects, err := r.read(ctx, part.prefix)
		if err != nil {
			return nil, err
		}
		if len(objects) == 0 {
			return nil, fmt.Errorf("there is nothing under %s", part.prefix)
		}
		*part.of = append(*part.of, objects...)
		for _, object := range objects {
			if part.names != nil {
				*part.names = append(*part.names, path.Base(string(object.Key)))
			}
		}
	}
	w.UIDs = fakeapi.UIDsOf(w.Each, fakeapi.UIDsOf(w.Once, nil))
	return w, nil
}

// sizes describes the size of a block's objects by kind.
func sizes(w *fakeapi.Sample) string {
	number, bytes := map[string]int{}, map[string]int{}
	for _, object := range w.Each {
		kind := strings.SplitN(strings.TrimPrefix(strings.TrimPrefix(string(object.Key), "/registry/"), "karpenter.sh/"), "/", 2)[0]
		number[kind]++
		bytes[kind] += len(object.Value)
	}
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(number)) {
		lines = append(lines, fmt.Sprintf("%d %s of %d bytes", number[kind], kind, bytes[kind]/number[kind]))
	}
	return strings.Join(lines, ", ")
}

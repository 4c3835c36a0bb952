package model_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// TestPodRefs checks the form of references in annotations: UIDs of pods, with the UID of a controller after a slash.
func TestPodRefs(t *testing.T) {
	const text = "pod-1 pod-2/set pod-3"
	want := []model.PodRef{{UID: "pod-1"}, {UID: "pod-2", Controller: "set"}, {UID: "pod-3"}}
	refs := model.ParsePodRefs(text)
	if diff := cmp.Diff(want, refs); diff != "" {
		t.Errorf("parsed (-want +got):\n%s", diff)
	}
	if got := model.JoinPodRefs(refs); got != text {
		t.Errorf("text %q, want %q", got, text)
	}
	if refs := model.ParsePodRefs(" "); refs != nil {
		t.Errorf("no text is %v, want nil", refs)
	}
	encoded, err := json.Marshal(want)
	if err != nil || string(encoded) != `["pod-1","pod-2/set","pod-3"]` {
		t.Errorf("JSON %s, %v", encoded, err)
	}
	var decoded []model.PodRef
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, decoded); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
}

// TestRecordedReservations checks that a node has reservations for the pods that its claim was launched for until it is
// initialized.
func TestRecordedReservations(t *testing.T) {
	inFlight := []model.Reservation{{Pod: model.PodRef{UID: "first"}, Source: model.FromLaunch},
		{Pod: model.PodRef{UID: "second", Controller: "set"}, Source: model.FromLaunch}}
	for stage, want := range map[model.Stage][]model.Reservation{
		model.Launching: inFlight, model.Registered: inFlight, model.Initialized: nil,
	} {
		b := model.NewBuilder()
		b.UpsertNode(model.NodeSpec{Name: "n", Claim: "n", Stage: stage, LaunchedFor: model.ParsePodRefs("first second/set first")})
		if diff := cmp.Diff(want, b.Snapshot(epoch).Node("n").Reservations); diff != "" {
			t.Errorf("stage %v (-want +got):\n%s", stage, diff)
		}
	}
}

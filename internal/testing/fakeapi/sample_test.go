package fakeapi

import "testing"

// TestBlock checks that a block has other names and UIDs than the first wherever they occur, with the same length,
// and that references to the objects that exist once are unchanged.
func TestBlock(t *testing.T) {
	const pool, claim = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
	const other, pod = "33333333-3333-3333-3333-333333333333", "44444444-4444-4444-4444-444444444444"
	w := &Sample{
		Each: []Stored{
			{[]byte("/registry/karpenter.sh/nodeclaims/loaded-abcdefgh"), []byte("loaded-abcdefgh " + claim + " of " + pool)},
			{[]byte("/registry/minions/kwok-loaded-abcdefgh-xyz12"), []byte("kwok-loaded-abcdefgh-xyz12 " + other + " of " + claim)},
			{[]byte("/registry/pods/block-0000/app-1"), []byte("\x0aapp-1 block-0000 " + pod + " kwok-loaded-abcdefgh-xyz12\xff")},
		},
		Claims: []string{"loaded-abcdefgh"}, DaemonPods: []string{"agent-q2w3e"},
	}
	w.UIDs = UIDsOf(w.Each, []string{pool})
	got := w.Block(17)
	for i, object := range got {
		if len(object.Key) != len(w.Each[i].Key) || len(object.Value) != len(w.Each[i].Value) {
			t.Errorf("%q of %d bytes has become %q of %d", w.Each[i].Key, len(w.Each[i].Value), object.Key, len(object.Value))
		}
	}
	// There are three UIDs, of which block 17 has those from 51, and one claim, of which it has the 17th.
	want := []string{
		"/registry/karpenter.sh/nodeclaims/loaded-abc0000h loaded-abc0000h 22222222-2222-2222-2222-000000000033 of " + pool,
		"/registry/minions/kwok-loaded-abc0000h-xyz12 kwok-loaded-abc0000h-xyz12 33333333-3333-3333-3333-000000000034 of 22222222-2222-2222-2222-000000000033",
		"/registry/pods/block-0017/app-1 \x0aapp-1 block-0017 44444444-4444-4444-4444-000000000035 kwok-loaded-abc0000h-xyz12\xff",
	}
	for i, object := range got {
		if text := string(object.Key) + " " + string(object.Value); text != want[i] {
			t.Errorf("got  %q\nwant %q", text, want[i])
		}
	}
}

package top

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// Program displays fleets until the user quits.
type Program struct {
	// Read reads the cluster.
	Read func(context.Context) (*Fleet, error)
	// Explain returns the explanation of a row. It may be called while Read runs.
	Explain func(context.Context, Subject) (string, error)
	// Interval is the pause between two reads.
	Interval time.Duration
	// Sort, Reverse and Filter are the initial settings of the screen.
	Sort    string
	Reverse bool
	Filter  string
	// In and Out are the terminal.
	In  io.Reader
	Out io.Writer
}

// Run returns when the user quits or the context ends, without an error.
func (p *Program) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	screen := &Screen{paint: colors(), reverse: p.Reverse, filter: p.Filter}
	screen.order = max(0, slices.Index(Orders(), p.Sort))
	w := &watcher{ctx: ctx, program: p, screen: screen}
	_, err := tea.NewProgram(w, tea.WithContext(ctx), tea.WithInput(p.In), tea.WithOutput(p.Out)).Run()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("showing the fleet: %w", err)
	}
	return nil
}

// watcher implements bubbletea's model with a Screen.
type watcher struct {
	ctx     context.Context // of the program: bubbletea's commands have none
	program *Program
	screen  *Screen
}

// reading is a fleet, or the error of the read.
type reading struct {
	fleet *Fleet
	err   error
}

// explained is the explanation of a row.
type explained struct {
	of   Subject
	text string
}

// due means that the cluster is to be read again.
type due struct{}

// Init implements tea.Model.
func (w *watcher) Init() tea.Cmd { return w.read }

func (w *watcher) read() tea.Msg {
	fleet, err := w.program.Read(w.ctx)
	return reading{fleet, err}
}

// explain returns the command that explains a row. An error is the explanation.
func (w *watcher) explain(of Subject) tea.Cmd {
	return func() tea.Msg {
		text, err := w.program.Explain(w.ctx, of)
		if err != nil {
			text = err.Error()
		}
		return explained{of, text}
	}
}

// Update implements tea.Model.
func (w *watcher) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch m := message.(type) {
	case tea.WindowSizeMsg:
		w.screen.Resize(m.Width, m.Height)
	case tea.KeyPressMsg:
		switch request := w.screen.Press(m.String()); {
		case request.Quit:
			return w, tea.Quit
		case request.Explain != nil:
			return w, w.explain(*request.Explain)
		}
	case explained:
		w.screen.Explain(m.of, m.text)
	case reading:
		if m.err != nil {
			w.screen.Fail(m.err)
		} else {
			w.screen.Show(m.fleet)
		}
		return w, tea.Tick(w.program.Interval, func(time.Time) tea.Msg { return due{} })
	case due:
		return w, w.read
	}
	return w, nil
}

// View implements tea.Model.
func (w *watcher) View() tea.View {
	view := tea.NewView(w.screen.Render())
	view.AltScreen = true
	return view
}

// colors returns a paint with the terminal's own palette, so that the text is readable on any background.
func colors() paint {
	style := lipgloss.NewStyle
	styles := map[role]lipgloss.Style{
		title: style().Bold(true), faint: style().Faint(true), chosen: style().Reverse(true),
		good: style().Foreground(lipgloss.Green), busy: style().Foreground(lipgloss.Yellow),
		full: style().Foreground(lipgloss.Cyan), bad: style().Foreground(lipgloss.Red),
	}
	return func(r role, text string) string { return styles[r].Render(text) }
}

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

// Program shows fleets until somebody leaves.
type Program struct {
	// Read reads the cluster.
	Read func(context.Context) (*Fleet, error)
	// Interval is the pause between two readings.
	Interval time.Duration
	// Sort, Reverse and Filter are what the screen begins with.
	Sort    string
	Reverse bool
	Filter  string
	// In and Out are the terminal.
	In  io.Reader
	Out io.Writer
}

// Run returns when somebody leaves or the context ends; that is no error.
func (p *Program) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	screen := &Screen{paint: colours(), reverse: p.Reverse, filter: p.Filter}
	screen.order = max(0, slices.Index(Orders(), p.Sort))
	w := &watcher{ctx: ctx, program: p, screen: screen}
	_, err := tea.NewProgram(w, tea.WithContext(ctx), tea.WithInput(p.In), tea.WithOutput(p.Out)).Run()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("showing the fleet: %w", err)
	}
	return nil
}

// watcher is the screen as bubbletea wants it.
type watcher struct {
	ctx     context.Context // of the program: bubbletea's commands have none
	program *Program
	screen  *Screen
}

// reading is a fleet, or why there is none.
type reading struct {
	fleet *Fleet
	err   error
}

// due is that the cluster is to be read again.
type due struct{}

// Init implements tea.Model.
func (w *watcher) Init() tea.Cmd { return w.read }

func (w *watcher) read() tea.Msg {
	fleet, err := w.program.Read(w.ctx)
	return reading{fleet, err}
}

// Update implements tea.Model.
func (w *watcher) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch m := message.(type) {
	case tea.WindowSizeMsg:
		w.screen.Resize(m.Width, m.Height)
	case tea.KeyPressMsg:
		if w.screen.Press(m.String()) {
			return w, tea.Quit
		}
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

// colours are those of the terminal's own palette, so that they are readable on any background.
func colours() paint {
	style := lipgloss.NewStyle
	styles := map[role]lipgloss.Style{
		title: style().Bold(true), faint: style().Faint(true), chosen: style().Reverse(true),
		good: style().Foreground(lipgloss.Green), busy: style().Foreground(lipgloss.Yellow),
		full: style().Foreground(lipgloss.Cyan), bad: style().Foreground(lipgloss.Red),
	}
	return func(r role, text string) string { return styles[r].Render(text) }
}

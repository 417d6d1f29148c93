// Questions to workers, which run beside the page.

export class Background {
  // `source` is the worker's script; `buffer` what it begins with, a copy of the page's content.
  constructor(source, buffer) {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.worker = new Worker(url);
    this.waiting = new Map();
    this.count = 0;
    this.worker.onmessage = ({ data: { id, progress, result } }) => {
      const waiting = this.waiting.get(id);
      if (!waiting) return;
      if (result === undefined) waiting.progress?.(progress);
      else {
        this.waiting.delete(id);
        waiting.resolve(result);
      }
    };
    this.ask("load", { buffer });
  }

  ask(task, details = {}, progress = null) {
    const id = ++this.count;
    const answer = new Promise((resolve) => this.waiting.set(id, { resolve, progress }));
    this.worker.postMessage({ id, task, ...details });
    return answer;
  }

  // Give up what is under way.
  cancel() {
    this.waiting.clear();
    this.worker.postMessage({ id: ++this.count, task: "nothing" });
  }
}

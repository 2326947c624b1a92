// As much of a terminal as rlcli's output needs: lines that scroll, colours, and lines that are drawn again.

export class Screen {
  #columns;
  #rows;
  /** Of cells: { char, style }. */
  #lines = [[]];
  #x = 0;
  #y = 0;
  #style = "";

  constructor(columns, rows) {
    this.#columns = columns;
    this.#rows = rows;
  }

  /** What is seen, a list of runs of one style for each row. */
  rows() {
    return this.#lines.slice(-this.#rows).map((cells) => {
      const runs = [];
      for (const { char, style } of Array.from(cells, (cell) => cell ?? { char: " ", style: "" })) {
        const last = runs.at(-1);
        if (last?.style === style) last.text += char;
        else runs.push({ text: char, style });
      }
      return runs;
    });
  }

  write(text) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control sequences are what this reads.
    for (const [piece, params, final] of text.matchAll(/\x1b\[([?\d;]*)([A-Za-z])|\x1b[()][A-Z0-9]|[\s\S]/gu))
      if (final !== undefined) this.#control(params, final);
      else if (piece.length <= 2) this.#put(piece);
  }

  #put(char) {
    if (char === "\r") this.#x = 0;
    else if (char === "\n") this.#down();
    else if (char >= " ") {
      if (this.#x >= this.#columns) {
        this.#x = 0;
        this.#down();
      }
      this.#lines[this.#y][this.#x++] = { char, style: this.#style };
    }
  }

  #down() {
    this.#y += 1;
    if (this.#y === this.#lines.length) this.#lines.push([]);
  }

  #control(params, final) {
    const count = Number(params) || 1;
    const line = this.#lines[this.#y];
    if (final === "m") this.#style = params === "" || params === "0" ? "" : this.#restyle(params);
    else if (final === "A") this.#y = Math.max(0, this.#y - count);
    else if (final === "B") for (let i = 0; i < count; i++) this.#down();
    else if (final === "G") this.#x = count - 1;
    else if (final === "C") this.#x += count;
    else if (final === "D") this.#x = Math.max(0, this.#x - count);
    else if (final === "K") line.length = params === "2" ? 0 : Math.min(line.length, this.#x);
    else if (final === "J") {
      line.length = Math.min(line.length, this.#x);
      this.#lines.length = this.#y + 1;
    }
  }

  /** Names of the styles that are on, in order. */
  #restyle(params) {
    const names = { 1: "bold", 2: "dim", 31: "red", 32: "green", 33: "yellow", 34: "blue", 35: "magenta", 36: "cyan" };
    const ends = { 22: ["bold", "dim"], 39: ["red", "green", "yellow", "blue", "magenta", "cyan"] };
    let on = new Set(this.#style.split(" ").filter((name) => name !== ""));
    for (const code of params.split(";")) {
      if (code === "0") on = new Set();
      if (names[code]) on.add(names[code]);
      for (const name of ends[code] ?? []) on.delete(name);
    }
    return [...on].sort().join(" ");
  }
}
